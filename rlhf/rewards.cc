#include "rlhf/rewards.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/text.h"

namespace weft {

Registry<RewardEntry>& Rewards() {
  static auto& registry = *new Registry<RewardEntry>("reward");
  return registry;
}

void RewardConfig::Fields(FieldVisitor& v) {
  v.Field("weight", weight, "factor of its scores in the sum");
}

void RewardList::Look() const {
  for (const auto& [name, config] : entries_) {
    try {
      config->Look();
    } catch (Error& error) {
      error.AddContext("rewards." + name);
      throw;
    }
  }
}

int64_t RewardList::ModelBytes(const RewardSetting& setting) const {
  int64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.config->ModelBytes(setting);
  return bytes;
}

std::string RewardList::comparing() const {
  const auto found =
      std::ranges::find_if(entries_, [](const Entry& entry) { return entry.config->compares(); });
  return found == entries_.end() ? "" : found->name;
}

RewardConfig& RewardList::Add(const std::string& name) {
  return *entries_.emplace_back(name, Rewards().At(name).make()).config;
}

void RewardList::Fields(FieldVisitor& v, const char* help) {
  const std::string text = std::string(help) + "; there are " + Join(Rewards().Names(), ", ");
  v.Sections("rewards",
             {.clear = [this] { entries_.clear(); },
              .make = [this](const std::string& name) -> Config& { return Add(name); },
              .current =
                  [this] {
                    std::vector<std::pair<std::string, Config*>> sections;
                    for (Entry& entry : entries_) {
                      sections.emplace_back(entry.name, entry.config.get());
                    }
                    return sections;
                  }},
             text.c_str());
}

RewardSum::RewardSum(const RewardList& list, const RewardSetting& setting) {
  for (const auto& [name, config] : list.entries()) {
    const auto same = std::ranges::count_if(scorers_, [&](const Scorer& s) {
      return s.name == name || s.name.starts_with(name + "_");
    });
    try {
      scorers_.push_back({.name = same == 0 ? name : name + "_" + std::to_string(same + 1),
                          .weight = config->weight,
                          .reward = config->Make(setting)});
    } catch (Error& error) {
      error.AddContext("rewards." + name);
      throw;
    }
  }
}

double RewardSum::Part::mean() const {
  return std::accumulate(score.begin(), score.end(), 0.0) / static_cast<double>(score.size());
}

std::vector<std::string> RewardSum::watching() const {
  std::vector<std::string> names;
  for (const Scorer& scorer : scorers_) {
    if (scorer.weight == 0) names.push_back(scorer.name);
  }
  return names;
}

std::vector<double> RewardSum::Score(const Context& context, std::span<const ScoredAnswer> answers,
                                     std::vector<Part>* parts) {
  std::vector<double> sum(answers.size());
  for (const Scorer& scorer : scorers_) {
    std::vector<double> score;
    try {
      score = scorer.reward->Score(context, answers);
      if (score.size() != answers.size()) {
        throw Error(ErrorCode::kUnavailable, std::to_string(score.size()) + " scores for " +
                                                 std::to_string(answers.size()) + " answers");
      }
      for (size_t i = 0; i < score.size(); ++i) {
        if (!std::isfinite(score[i])) {
          throw Error(ErrorCode::kDiverged, "the score of answer " + std::to_string(i) +
                                                " is not finite; the answer is \"" +
                                                answers[i].answer.substr(0, 200) + "\"");
        }
        sum[i] += scorer.weight * score[i];
      }
    } catch (Error& error) {
      error.AddContext("rewards." + scorer.name);
      throw;
    }
    if (parts != nullptr) parts->push_back({scorer.name, std::move(score)});
  }
  return sum;
}

}  // namespace weft
