#include "environments/verify/verify_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/check.h"
#include "environments/toy_text/tabular_environment.h"

namespace weft {
namespace {

constexpr double kErrors = 6;  // standard errors that a frequency may be off
constexpr int64_t kSteps = 200, kStarts = 20000;

// Tensors [S, A, K] of a recording.
struct Table {
  explicit Table(const Recording& recording)
      : probability(recording.All("prob")),
        next(recording.All("next")),
        reward(recording.All("reward")),
        terminal(recording.All("terminated")),
        initial(recording.All("initial")),
        states(recording.Rows("prob")) {}
  std::vector<double> probability, next, reward, terminal, initial;
  int64_t states, actions = 0, outcomes = 0;
};

double FrequencyTolerance(double probability, int64_t draws) {
  const auto n = static_cast<double>(draws);
  return kErrors * std::sqrt(probability * (1 - probability) / n) + 1 / n;
}

class TableVerifier {
 public:
  TableVerifier(const Recording& recording, EnvironmentRow& row, Comparison& comparison)
      : recording_(recording), row_(row), comparison_(comparison), table_(recording) {
    environment_ = dynamic_cast<const TabularEnvironment*>(&row.environment());
    const auto* action = row.spec().action.As<Discrete>();
    WEFT_CHECK(environment_ != nullptr && action != nullptr)
        << row.spec().id << " has no transition table, " << recording.name() << " holds one";
    WEFT_CHECK_EQ(environment_->states(), table_.states) << "states of " << row.spec().id;
    table_.actions = action->n;
    const size_t choices = static_cast<size_t>(table_.states * action->n);
    table_.outcomes = static_cast<int64_t>(table_.probability.size() / choices);
    for (const auto* tensor :
         {&table_.probability, &table_.next, &table_.reward, &table_.terminal}) {
      WEFT_CHECK_EQ(tensor->size(), choices * static_cast<size_t>(table_.outcomes))
          << "outcomes of " << row.spec().id << " in " << recording.name();
    }
    WEFT_CHECK_EQ(table_.initial.size(), static_cast<size_t>(table_.states))
        << "starts in " << recording.name();
  }

  void Run() {
    Starts();
    for (int64_t state = 0; state < table_.states; ++state) {
      for (int64_t action = 0; action < table_.actions; ++action) {
        CheckOutcomes(state, action);
        CheckSteps(state, action);
      }
    }
    for (const char* discount : {"0.9", "0.99"}) CheckValues(discount);
    CheckMask();
  }

 private:
  void Starts() {
    std::vector<double> probability(static_cast<size_t>(table_.states)), frequency = probability;
    const std::vector<int64_t>& starts = environment_->starts();
    for (const int64_t start : starts)
      probability[static_cast<size_t>(start)] += 1 / static_cast<double>(starts.size());
    comparison_.Check("initial", probability, table_.initial, 0);
    for (int64_t i = 0; i < kStarts; ++i) {
      row_.Reset(rng_);
      frequency[static_cast<size_t>(row_.State()[0])] += 1 / static_cast<double>(kStarts);
    }
    for (size_t i = 0; i < frequency.size(); ++i) {
      comparison_.Check("initial (drawn)", frequency[i], table_.initial[i],
                        FrequencyTolerance(table_.initial[i], kStarts));
    }
  }

  // The first of the recorded outcomes of a state and action.
  size_t First(int64_t state, int64_t action) const {
    return static_cast<size_t>((state * table_.actions + action) * table_.outcomes);
  }

  void CheckOutcomes(int64_t state, int64_t action) {
    const Outcomes outcomes = environment_->OutcomesOf(state, action);
    const auto list = outcomes.list();
    const size_t first = First(state, action);
    for (size_t k = 0; k < static_cast<size_t>(table_.outcomes); ++k) {
      const double probability = table_.probability[first + k];
      comparison_.Check("prob", k < list.size() ? list[k].probability : 0, probability, 0);
      if (probability == 0 || k >= list.size()) continue;  // pads the recorded list
      comparison_.Check("next", static_cast<double>(list[k].next), table_.next[first + k], 0);
      comparison_.Check("reward", list[k].reward, table_.reward[first + k], 0);
      comparison_.Check("terminated", list[k].terminal, table_.terminal[first + k], 0);
    }
  }

  // How often steps lead to each of the recorded outcomes; equal ones count together.
  void CheckSteps(int64_t state, int64_t action) {
    const size_t first = First(state, action), count = static_cast<size_t>(table_.outcomes);
    std::vector<double> probability(count), frequency(count);
    const auto place = [&](double next, double reward, bool terminal) {
      size_t k = 0;
      while (k < count && !(table_.next[first + k] == next && table_.reward[first + k] == reward &&
                            (table_.terminal[first + k] != 0) == terminal)) {
        ++k;
      }
      return k;
    };
    for (size_t k = 0; k < count; ++k) {
      if (table_.probability[first + k] == 0) continue;
      probability[place(table_.next[first + k], table_.reward[first + k],
                        table_.terminal[first + k] != 0)] += table_.probability[first + k];
    }
    std::vector<double> before = row_.State();
    before[0] = static_cast<double>(state);
    double elsewhere = 0;
    for (int64_t i = 0; i < kSteps; ++i) {
      row_.environment().SetState(before);
      row_.Step({&action, DType::kInt64}, rng_);
      const size_t k = place(row_.Observation()[0], row_.reward(), row_.type() == StepType::kLast);
      (k < count ? frequency[k] : elsewhere) += 1 / static_cast<double>(kSteps);
    }
    comparison_.Check("steps (drawn)", elsewhere, 0, 0);
    for (size_t k = 0; k < count; ++k) {
      comparison_.Check("steps (drawn)", frequency[k], probability[k],
                        FrequencyTolerance(std::min(probability[k], 1.0), kSteps));
    }
  }

  // q(s, a) = sum of p (r + discount max q(s', .)).
  void CheckValues(const std::string& discount) {
    const std::string values = "v_star_" + discount, actions = "q_star_" + discount;
    if (!recording_.Has(values) || !recording_.Has(actions)) return;
    const std::vector<double> v = recording_.All(values), q = recording_.All(actions);
    WEFT_CHECK(v.size() == static_cast<size_t>(table_.states) &&
               q.size() == v.size() * static_cast<size_t>(table_.actions))
        << values << " and " << actions << " of " << recording_.name();
    for (int64_t state = 0; state < table_.states; ++state) {
      double best = -std::numeric_limits<double>::infinity();
      for (int64_t action = 0; action < table_.actions; ++action) {
        double sum = 0;
        const Outcomes outcomes = environment_->OutcomesOf(state, action);
        for (const Outcome& outcome : outcomes.list()) {
          const double after = outcome.terminal ? 0 : v[static_cast<size_t>(outcome.next)];
          sum += outcome.probability * (outcome.reward + std::stod(discount) * after);
        }
        comparison_.Check(actions, sum, q[static_cast<size_t>(state * table_.actions + action)],
                          1e-10);
        best = std::max(best, sum);
      }
      comparison_.Check(values, best, v[static_cast<size_t>(state)], 1e-10);
    }
  }

  void CheckMask() {
    const auto& leaves = row_.spec().observation;
    if (!recording_.Has("action_mask") || leaves.back().name != "action_mask") return;
    std::vector<double> state = row_.State();
    for (int64_t i = 0; i < table_.states; ++i) {
      state[0] = static_cast<double>(i);
      row_.SetState(state);
      const std::vector<double> observation = row_.Observation();
      comparison_.Check("action_mask", std::span(observation).subspan(1),
                        recording_.Row("action_mask", i), 0);
    }
  }

  const Recording& recording_;
  EnvironmentRow& row_;
  Comparison& comparison_;
  Table table_;
  const TabularEnvironment* environment_;
  Rng rng_{4, Purpose::kTest};
};

}  // namespace

void VerifyTables(const Recording& recording, EnvironmentRow& row, Comparison& comparison) {
  TableVerifier(recording, row, comparison).Run();
}

}  // namespace weft
