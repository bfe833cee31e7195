// What answers are worth: programs, models and services that score, several with weights.
//
//   rewards:
//     - {name: model, path: runs/reward/model, weight: 0.5}
//     - {name: letters, letters: e, weight: 10}
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/registry.h"
#include "language/projection.h"
#include "tensor/context.h"

namespace weft {

// An answer as rewards see it.
struct ScoredAnswer {
  std::string prompt;     // as the model read it
  std::string answer;     // without the token that ended it
  std::string expected;   // the completion of its prompt's row or task, where there is one; else ""
  bool finished = false;  // it ended by itself
  double outcome = 0;     // of an episode: what the counterpart found it worth
  std::vector<int32_t> prompt_ids;  // of the policy's tokenizer
  std::span<const int32_t> answer_ids;
};

class Reward {
 public:
  virtual ~Reward() = default;
  // One number each, in order. Throws Error naming what failed.
  virtual std::vector<double> Score(const Context& context,
                                    std::span<const ScoredAnswer> answers) = 0;
};

// Whose answers are scored.
struct RewardSetting {
  std::string policy;  // path of the model they come from
  Precision precision = Precision::kBFloat16;
};

// One entry of `rewards`; which keys it has depends on its name.
struct RewardConfig : Config {
  double weight = 1;

  void Fields(FieldVisitor& v) override;
  // Throws Error(kConfig) for what is not there, a model; before a run has a folder.
  virtual void Look() const {}
  virtual std::unique_ptr<Reward> Make(const RewardSetting& setting) const = 0;
  // Whether it can score only answers to prompts that have a completion.
  virtual bool compares() const { return false; }
  // Of the models that it reads.
  virtual int64_t ModelBytes(const RewardSetting&) const { return 0; }
};

struct RewardEntry {
  std::string summary;
  std::function<std::unique_ptr<RewardConfig>()> make;
};
Registry<RewardEntry>& Rewards();

#define WEFT_REGISTER_REWARD(Class, name, summary)        \
  [[maybe_unused]] static const bool registered_##Class = \
      ::weft::Rewards().Add(name, {summary, [] { return std::make_unique<Class>(); }})

// The list in a config.
class RewardList {
 public:
  void Fields(FieldVisitor& v, const char* help);
  bool empty() const { return entries_.empty(); }
  // Of all entries; errors say which.
  void Look() const;
  int64_t ModelBytes(const RewardSetting& setting) const;
  // The first that needs completions; "": none does.
  std::string comparing() const;
  // Adds an entry with default keys.
  RewardConfig& Add(const std::string& name);

  struct Entry {
    std::string name;
    std::unique_ptr<RewardConfig> config;
  };
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  std::deque<Entry> entries_;
};

// All of a list, made.
class RewardSum {
 public:
  RewardSum(const RewardList& list, const RewardSetting& setting);

  struct Part {
    std::string name;  // the second of a name: "letters_2"
    std::vector<double> score;
    double mean() const;
  };
  // Those with weight 0, which watch.
  std::vector<std::string> watching() const;
  // The weighted sum, and what it is made of. Error(kUnavailable) "rewards.NAME: ..." for one that
  // returns another number of scores than there are answers, or one that is not finite.
  std::vector<double> Score(const Context& context, std::span<const ScoredAnswer> answers,
                            std::vector<Part>* parts = nullptr);

 private:
  struct Scorer {
    std::string name;
    double weight;
    std::unique_ptr<Reward> reward;
  };
  std::vector<Scorer> scorers_;
};

}  // namespace weft
