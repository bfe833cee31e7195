#include "actors/evaluator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "actors/episode_statistics.h"
#include "actors/film.h"
#include "environments/batch_environment.h"
#include "environments/rollout_leaves.h"

namespace weft {

Evaluation Evaluate(const EnvironmentConfig& environment_config, Agent& agent,
                    const EvaluationOptions& options, ThreadPool* pool, RowActivity* activity) {
  WEFT_CHECK_GT(options.episodes, 0);
  const int64_t rows = std::min(options.rows, options.episodes);
  EnvironmentConfig config = environment_config;
  if (config.Spec().time_limit == 0) config.time_limit = options.longest;
  const auto environment = MakeBatchEnvironment(config, {.rows = rows,
                                                         .seed = options.seed,
                                                         .purpose = Purpose::kEvaluation,
                                                         .pool = pool,
                                                         .activity = activity});
  std::vector<Rng> rngs;
  for (int64_t row = 0; row < environment->rows(); ++row)
    rngs.emplace_back(options.seed, Purpose::kEvaluationAction, row);

  const int64_t agents = environment->spec().agent_count();
  EpisodeStatistics statistics(environment->rows(), agents);
  std::vector<double> agent_sums(agents > 1 ? agents : 0);
  std::vector<int64_t> wanted(rows);  // episodes still to run, per row
  for (int64_t row = 0; row < rows; ++row) wanted[row] = (options.episodes - row + rows - 1) / rows;

  double sum = 0, sum_of_squares = 0, length = 0;
  int64_t n = 0;
  TimeStep step = environment->MakeTimeStep();
  TensorMap leaves, chosen;
  environment->Reset(step);
  while (true) {
    leaves = step.Leaves();
    statistics.Observe(leaves);
    for (const auto& episode : statistics.ended()) {
      if (wanted[episode.environment]-- <= 0) continue;
      sum += episode.episode_return;
      sum_of_squares += episode.episode_return * episode.episode_return;
      length += static_cast<double>(episode.length);
      std::ranges::transform(agent_sums, episode.agent_returns, agent_sums.begin(), std::plus());
      ++n;
    }
    statistics.Clear();
    if (n == options.episodes) break;
    agent.Act({.step = leaves, .explore = options.explore, .rngs = rngs}, chosen);
    environment->Step(chosen.At("action"), step);
  }
  const double count = static_cast<double>(n);
  const double mean = sum / count;
  for (double& of_agent : agent_sums) of_agent /= count;
  return {.mean = mean,
          .std = std::sqrt(std::max(0.0, sum_of_squares / count - mean * mean)),
          .mean_length = length / count,
          .n = n,
          .agent_means = agent_sums};
}

PortList Evaluator::Ports() {
  return {.inputs = {{.name = "snapshot"}}, .outputs = {{.name = "result", .optional = true}}};
}

Evaluator::Evaluator(const Replica& replica, const EnvironmentConfig& environment,
                     AgentFactory make_agent, const EvaluationOptions& options,
                     std::string run_folder)
    : environment_(environment),
      make_agent_(std::move(make_agent)),
      options_(options),
      run_folder_(std::move(run_folder)),
      pool_(replica.context.pool),
      spec_(environment.Spec()),
      agent_(make_agent_(std::min(options.rows, options.episodes) * spec_.agent_count())) {}

void Evaluator::Step(weft::Ports& ports) {
  Message message = ports.Read(kSnapshot);
  const int wanted = TakeWanted(message.body);
  if ((wanted & kWantsVideo) != 0) {
    const auto agent = make_agent_(spec_.agent_count());
    agent->Load(message.body);
    RecordVideo(environment_, *agent, options_.seed, VideoPath(run_folder_, message.version));
  }
  if ((wanted & kWantsEvaluation) == 0) return;
  agent_->Load(message.body);
  const Evaluation result = Evaluate(environment_, *agent_, options_, pool_, &activity_);
  ports.Log("evaluation_steps", static_cast<double>(message.version));
  ports.Log("evaluation_return", result.mean);
  ports.Log("evaluation_return_std", result.std);
  ports.Log("evaluation_length", result.mean_length);
  for (size_t agent = 0; agent < result.agent_means.size(); ++agent)
    ports.Log("evaluation_return." + spec_.agents[agent].name, result.agent_means[agent]);
  if (ports.Connected(kResult)) {
    Message answer{.body = {}, .version = message.version};
    answer.body.Set("mean", Tensor::Scalar(result.mean, DType::kFloat64));
    ports.Write(kResult, std::move(answer));
  }
}

}  // namespace weft
