// Losses on pairs of a chosen and a rejected answer, and on single answers with a verdict, with
// their gradients. Log-probabilities are sums over an answer's tokens; the gradient by each token
// of an answer is the gradient by its sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft {

// -log sigmoid(chosen - rejected - margin) + centring (chosen + rejected)^2, mean over pairs
// (Bradley and Terry 1952; Eisenstein et al. 2023 for the centring).
struct PairLoss {
  double loss = 0;
  std::vector<double> per_pair, d_chosen, d_rejected;  // [pairs]
  double accuracy = 0;                                 // share with chosen above rejected
};
PairLoss BradleyTerry(std::span<const double> chosen, std::span<const double> rejected,
                      std::span<const double> margin, double centring);

enum class PreferenceObjective : uint8_t {
  kSigmoid,  // Rafailov et al. 2023; with smoothing its conservative form (Mitchell 2023)
  kRobust,   // Chowdhury et al. 2024, by the smoothing
  kHinge,    // Zhao et al. 2023
  kIpo,      // Azar et al. 2023, of sums
  kIpoMean,  // of means over tokens, as its code averages
};
struct PreferenceOptions {
  PreferenceObjective objective = PreferenceObjective::kSigmoid;
  double beta = 0.1, smoothing = 0;
};
// Sums of log-probabilities of policy and reference [pairs]; lengths are read by kIpoMean alone.
// accuracy: of the implied rewards beta (policy - reference).
PairLoss DirectPreference(std::span<const double> chosen, std::span<const double> rejected,
                          std::span<const double> reference_chosen,
                          std::span<const double> reference_rejected,
                          std::span<const int64_t> chosen_length,
                          std::span<const int64_t> rejected_length,
                          const PreferenceOptions& options);

// Kahneman-Tversky optimisation (Ethayarajh et al. 2024): l = policy - reference of an answer with
// a verdict, z = max(0, mean kl) held constant.
struct KtoOptions {
  double beta = 0.1, desirable_weight = 1, undesirable_weight = 1;
};
struct VerdictLoss {
  double loss = 0, z = 0;
  std::vector<double> per_example, d_policy;
};
VerdictLoss Kto(std::span<const double> policy, std::span<const double> reference,
                std::span<const uint8_t> desirable, std::span<const double> kl,
                const KtoOptions& options);

// Hong et al. 2024: the mean over tokens of chosen's negative log-likelihood less lambda log
// sigmoid of the log odds ratio, of length-averaged log-probabilities.
PairLoss OddsRatio(std::span<const double> chosen, std::span<const double> rejected,
                   std::span<const int64_t> chosen_length, std::span<const int64_t> rejected_length,
                   double lambda);
// Meng et al. 2024: -log sigmoid(beta (c - r) - gamma) of length-averaged log-probabilities.
PairLoss SimplePreference(std::span<const double> chosen, std::span<const double> rejected,
                          std::span<const int64_t> chosen_length,
                          std::span<const int64_t> rejected_length, double beta, double gamma);

}  // namespace weft
