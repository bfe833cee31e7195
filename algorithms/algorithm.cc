#include "algorithms/algorithm.h"

#include <algorithm>
#include <thread>

namespace weft {

void EvaluationConfig::Fields(FieldVisitor& v) {
  v.Field("every", every, "steps between evaluations; 0: ten times over the run",
          Range::AtLeast(0));
  v.Field("episodes", episodes, "episodes of an evaluation during training", Range::AtLeast(1));
  v.Field("rows", rows, "environments that an evaluation steps together", Range::Between(1, 4096));
  v.Field("final_episodes", final_episodes, "episodes of the evaluation at the end; 0: none",
          Range::AtLeast(0));
}

void Algorithm::Fields(FieldVisitor& v) {
  v.Choice("algorithm", algorithm, Algorithms().Names(),
           "the algorithm; its own keys follow the shared ones");
  Method::Fields(v);
  v.Field("actors", actors, "actor replicas; 0: what the placement suggests",
          Range::Between(0, 4096));
  v.Field("init_from", init_from, "run or checkpoint whose policy the training starts from");
  v.Field("stop_at_return", stop_at_return, "stop once an evaluation's mean return reaches this",
          Range().OrInfinite());
  v.Section("environment", environment, "what is acted in");
  v.Section("evaluation", evaluation, "periodic evaluation with deterministic actions");
  v.Field("video_every", video_every,
          "steps between videos of the policy, videos/STEP.gif in the run's folder; 0: none",
          Range::AtLeast(0));
}

void Algorithm::Check() const {
  const int64_t rows = environment.rows;
  if (actors > 0 && rows % actors != 0) {
    throw ConfigProblem("actors", std::to_string(actors) + " does not divide environment.rows = " +
                                      std::to_string(rows) + "; " +
                                      std::to_string(ActorReplicas()) + " does");
  }
  if (!environment.wrappers.empty()) environment.Spec();  // throws for one that does not fit
}

int Algorithm::ActorReplicas() const {
  int64_t wanted = actors;
  if (wanted == 0)
    wanted = placement == "serial" ? 1 : placement == "threads" ? ThreadBudget() : processes;
  wanted = std::clamp<int64_t>(wanted, 1, environment.rows);
  while (environment.rows % wanted != 0) --wanted;
  return static_cast<int>(wanted);
}

int64_t Algorithm::EvaluationEvery() const {
  return evaluation.every > 0 ? evaluation.every : std::max<int64_t>(1, total_steps / 10);
}

AgentFactory Algorithm::Agents() const {
  return [this](int64_t rows) { return MakeAgent(rows); };
}

LearnerOptions Algorithm::LearnerSettings() const {
  return {.total_steps = total_steps,
          .evaluation_every = EvaluationEvery(),
          .video_every = video_every,
          .checkpoint_every = CheckpointEvery(),
          .checkpoint_min_seconds = checkpoint.min_seconds,
          .stop_at_return = stop_at_return,
          .initial_policy = init_from};
}

void Algorithm::AddEvaluator(FragmentGraph& graph) const {
  const EvaluationOptions options{
      .episodes = evaluation.episodes, .rows = evaluation.rows, .seed = seed, .explore = false};
  graph.Add("evaluator", 1,
            {.ports = Evaluator::Ports(), .make = [this, options](const Replica& replica) {
               return std::make_unique<Evaluator>(replica, environment, Agents(), options,
                                                  run_folder);
             }});
  graph.Connect("learner.snapshot", "evaluator.snapshot", Broadcast());
  if (StopsAtReturn()) graph.Connect("evaluator.result", "learner.evaluation", Broadcast());
}

Registry<AlgorithmEntry>& Algorithms() {
  static auto& registry = *new Registry<AlgorithmEntry>("algorithm");
  return registry;
}

std::unique_ptr<Algorithm> LoadAlgorithm(const ConfigSource& source) {
  const std::string name = source.Scalar("algorithm");
  if (name.empty()) {
    throw Error(ErrorCode::kConfig,
                "the config names no algorithm; add a line such as \"algorithm: ppo\" (one of " +
                    Join(Algorithms().Names(), ", ") + ")");
  }
  auto algorithm = Algorithms().At(name).make();
  source.Parse(*algorithm);
  return algorithm;
}

}  // namespace weft
