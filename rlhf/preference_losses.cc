#include "rlhf/preference_losses.h"

#include <cmath>
#include <numeric>

namespace weft {
namespace {

double Sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
double LogSigmoid(double x) {
  return x >= 0 ? -std::log1p(std::exp(-x)) : x - std::log1p(std::exp(x));
}

// The mean over pairs of `pair(i, loss, d by chosen, d by rejected)`.
template <class F>
PairLoss MeanOverPairs(size_t pairs, F&& pair) {
  PairLoss result;
  const auto count = static_cast<double>(pairs);
  for (size_t i = 0; i < pairs; ++i) {
    double loss = 0, d_chosen = 0, d_rejected = 0;
    pair(i, loss, d_chosen, d_rejected);
    result.per_pair.push_back(loss);
    result.loss += loss / count;
    result.d_chosen.push_back(d_chosen / count);
    result.d_rejected.push_back(d_rejected / count);
  }
  return result;
}

}  // namespace

PairLoss BradleyTerry(std::span<const double> chosen, std::span<const double> rejected,
                      std::span<const double> margin, double centring) {
  PairLoss result =
      MeanOverPairs(chosen.size(), [&](size_t i, double& loss, double& d_c, double& d_r) {
        const double d = chosen[i] - rejected[i] - (margin.empty() ? 0 : margin[i]);
        const double sum = chosen[i] + rejected[i];
        loss = -LogSigmoid(d) + centring * sum * sum;
        d_c = -Sigmoid(-d) + 2 * centring * sum;
        d_r = Sigmoid(-d) + 2 * centring * sum;
      });
  for (size_t i = 0; i < chosen.size(); ++i) result.accuracy += chosen[i] > rejected[i];
  result.accuracy /= static_cast<double>(chosen.size());
  return result;
}

PairLoss DirectPreference(std::span<const double> chosen, std::span<const double> rejected,
                          std::span<const double> reference_chosen,
                          std::span<const double> reference_rejected,
                          std::span<const int64_t> chosen_length,
                          std::span<const int64_t> rejected_length,
                          const PreferenceOptions& options) {
  const double beta = options.beta, e = options.smoothing;
  double accuracy = 0;
  PairLoss result =
      MeanOverPairs(chosen.size(), [&](size_t i, double& loss, double& d_c, double& d_r) {
        const bool mean = options.objective == PreferenceObjective::kIpoMean;
        const double c_scale = mean ? 1 / static_cast<double>(chosen_length[i]) : 1;
        const double r_scale = mean ? 1 / static_cast<double>(rejected_length[i]) : 1;
        const double c = chosen[i] - reference_chosen[i];
        const double r = rejected[i] - reference_rejected[i];
        const double d = c * c_scale - r * r_scale;
        accuracy += c > r;
        double slope = 0;
        switch (options.objective) {
          case PreferenceObjective::kSigmoid:
            loss = -(1 - e) * LogSigmoid(beta * d) - e * LogSigmoid(-beta * d);
            slope = beta * (-(1 - e) * Sigmoid(-beta * d) + e * Sigmoid(beta * d));
            break;
          case PreferenceObjective::kRobust:
            loss = (-(1 - e) * LogSigmoid(beta * d) + e * LogSigmoid(-beta * d)) / (1 - 2 * e);
            slope = beta * (-(1 - e) * Sigmoid(-beta * d) - e * Sigmoid(beta * d)) / (1 - 2 * e);
            break;
          case PreferenceObjective::kHinge:
            loss = std::max(0.0, 1 - beta * d);
            slope = loss > 0 ? -beta : 0;
            break;
          case PreferenceObjective::kIpo:
          case PreferenceObjective::kIpoMean: {
            const double difference = d - 1 / (2 * beta);
            loss = difference * difference;
            slope = 2 * difference;
            break;
          }
        }
        d_c = slope * c_scale;
        d_r = -slope * r_scale;
      });
  result.accuracy = accuracy / static_cast<double>(chosen.size());
  return result;
}

VerdictLoss Kto(std::span<const double> policy, std::span<const double> reference,
                std::span<const uint8_t> desirable, std::span<const double> kl,
                const KtoOptions& options) {
  VerdictLoss result;
  const auto count = static_cast<double>(policy.size());
  result.z =
      std::max(0.0, std::accumulate(kl.begin(), kl.end(), 0.0) / static_cast<double>(kl.size()));
  for (size_t i = 0; i < policy.size(); ++i) {
    const double l = policy[i] - reference[i];
    const bool good = desirable[i] != 0;
    const double s = Sigmoid(options.beta * (good ? l - result.z : result.z - l));
    const double weight = good ? options.desirable_weight : options.undesirable_weight;
    result.per_example.push_back(weight * (1 - s));
    result.loss += weight * (1 - s) / count;
    result.d_policy.push_back((good ? -1 : 1) * weight * options.beta * s * (1 - s) / count);
  }
  return result;
}

PairLoss OddsRatio(std::span<const double> chosen, std::span<const double> rejected,
                   std::span<const int64_t> chosen_length, std::span<const int64_t> rejected_length,
                   double lambda) {
  const double tokens =
      static_cast<double>(std::accumulate(chosen_length.begin(), chosen_length.end(), int64_t{0}));
  const auto pairs = static_cast<double>(chosen.size());
  return MeanOverPairs(chosen.size(), [&](size_t i, double& loss, double& d_c, double& d_r) {
    const auto c_length = static_cast<double>(chosen_length[i]);
    const auto r_length = static_cast<double>(rejected_length[i]);
    const double c = chosen[i] / c_length, r = rejected[i] / r_length;
    const double odds = (c - r) - (std::log1p(-std::exp(c)) - std::log1p(-std::exp(r)));
    const double slope = -lambda * Sigmoid(-odds);
    // d log(p / (1 - p)) / d log p = 1 / (1 - p)
    loss = -chosen[i] * pairs / tokens - lambda * LogSigmoid(odds);
    d_c = -pairs / tokens + slope / (-std::expm1(c)) / c_length;
    d_r = -slope / (-std::expm1(r)) / r_length;
  });
}

PairLoss SimplePreference(std::span<const double> chosen, std::span<const double> rejected,
                          std::span<const int64_t> chosen_length,
                          std::span<const int64_t> rejected_length, double beta, double gamma) {
  return MeanOverPairs(chosen.size(), [&](size_t i, double& loss, double& d_c, double& d_r) {
    const auto c_length = static_cast<double>(chosen_length[i]);
    const auto r_length = static_cast<double>(rejected_length[i]);
    const double d = beta * (chosen[i] / c_length - rejected[i] / r_length) - gamma;
    loss = -LogSigmoid(d);
    d_c = -Sigmoid(-d) * beta / c_length;
    d_r = Sigmoid(-d) * beta / r_length;
  });
}

}  // namespace weft
