#include "algorithms/off_policy.h"

#include "actors/actor.h"
#include "actors/step_recorder.h"
#include "environments/environment_fragment.h"
#include "environments/observation_input.h"

namespace weft {

void CheckOffPolicy(const Algorithm& algorithm, const ReplayConfig& replay, int64_t train_every) {
  const int64_t rows = algorithm.environment.AgentRows();
  if (train_every % rows != 0) {
    throw ConfigProblem("train_every",
                        std::to_string(train_every) + " is no multiple of the " +
                            std::to_string(rows) + " rows of the environment; the nearest is " +
                            std::to_string(std::max<int64_t>(1, train_every / rows) * rows));
  }
  if (algorithm.environment.normalise_observation.enabled ||
      algorithm.environment.normalise_reward.enabled) {
    throw ConfigProblem("environment.normalise_observation.enabled",
                        "statistics that move would make old transitions mean something else; "
                        "off-policy algorithms "
                        "learn from raw observations and rewards");
  }
  if (replay.min_size >= algorithm.total_steps) {
    throw ConfigProblem("replay.min_size",
                        "learning would start after the last step: total_steps = " +
                            std::to_string(algorithm.total_steps));
  }
}

void BuildOffPolicy(FragmentGraph& graph, const Algorithm& algorithm, const ReplayConfig& replay,
                    const OffPolicy& options, FragmentFactory learner) {
  const int actors = algorithm.ActorReplicas();
  const EnvironmentSpec spec = algorithm.environment.Spec();
  const int64_t rows = algorithm.environment.AgentRows();
  const ActorOptions acting{.rows = rows,
                            .agents = spec.agent_count(),
                            .piece_steps = options.train_every / rows,
                            .seed = algorithm.seed};
  const auto make_agent = algorithm.Agents();
  graph.Add("environment", actors, EnvironmentFragment(algorithm.environment, algorithm.seed),
            Role::kWorker);
  graph.Add("actor", actors,
            {.ports = Actor::Ports("steps"),
             .make =
                 [acting, make_agent](const Replica& replica) {
                   return std::make_unique<Actor>(
                       replica, acting, make_agent(acting.rows / replica.count),
                       std::make_unique<StepRecorder>(acting.piece_steps));
                 }},
            Role::kWorker);
  ReplayFragmentOptions table{.config = replay,
                              .carried = options.chosen,
                              .rows = rows,
                              .gamma = options.gamma,
                              .total_steps = algorithm.total_steps,
                              .seed = algorithm.seed};
  for (const Leaf& leaf : spec.observation) {
    table.observation.push_back(
        {leaf.name, leaf.shape, leaf.dtype == DType::kFloat64 ? DType::kFloat32 : leaf.dtype});
  }
  graph.Add("replay", 1, MakeReplay(table));
  graph.Add("learner", 1, std::move(learner));
  graph.Connect("environment.timestep", "actor.timestep", Rows());
  graph.Connect("actor.action", "environment.action", Rows());
  graph.Connect("actor.steps", "replay.insert", Rows(/*dim=*/1));
  graph.Connect("replay.batch", "learner.batch", Rows());
  graph.Connect("learner.parameters", "actor.parameters", Broadcast(/*max_lag=*/0));
  if (replay.prioritised) graph.Connect("learner.priority", "replay.update", Rows());
  algorithm.AddEvaluator(graph);
}

BatchFacts::BatchFacts(const Message& message)
    : has_batch(HasBatch(message)),
      last(message.body.At("last").data<uint8_t>()[0] != 0),
      env_steps(message.body.At("env_steps").data<int64_t>()[0]) {}

Message PriorityMessage(const Message& batch, const Tensor& td_error) {
  Message answer{.body = {}, .version = batch.version};
  answer.body.Set("index", batch.body.At("index"));
  answer.body.Set("key", batch.body.At("key"));
  answer.body.Set("td_error", td_error);
  return answer;
}

}  // namespace weft
