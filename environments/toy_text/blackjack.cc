// Blackjack-v1: beat the dealer by coming closer to 21 without exceeding it, from an infinite deck
// (Sutton and Barto 2018, example 5.1), as Gymnasium 1.4's toy_text/blackjack.py. The dealer hits
// below 17; a soft 17 counts as 17.
#include <algorithm>
#include <string>

#include "environments/register_environment.h"

namespace weft {
namespace {

struct Hand {
  int64_t total = 0;  // aces count 1
  int64_t cards = 0;
  bool ace = false;

  void Add(int64_t card) {
    total += card;
    ++cards;
    ace |= card == 1;
  }
  bool usable_ace() const { return ace && total + 10 <= 21; }
  int64_t sum() const { return usable_ace() ? total + 10 : total; }
  int64_t score() const { return sum() > 21 ? 0 : sum(); }
  bool natural() const { return cards == 2 && ace && total == 11; }
};

class Blackjack final : public Environment {
 public:
  static constexpr double kStepNanoseconds = 25;

  struct Arguments : Config {
    bool natural = false, sab = true;
    void Fields(FieldVisitor& v) override {
      v.Field("natural", natural, "a win with an ace and a ten pays 1.5 (without effect with sab)");
      v.Field("sab", sab,
              "rules of Sutton and Barto: an ace and a ten win unless the dealer has them too");
    }
  };

  explicit Blackjack(const Arguments& arguments)
      : natural_(arguments.natural),
        sab_(arguments.sab),
        spec_(std::make_unique<EnvironmentSpec>()) {
    const auto leaf = [](const char* name, double high) {
      return Leaf{.name = name, .shape = {}, .dtype = DType::kInt64, .low = {0}, .high = {high}};
    };
    *spec_ = {
        .id = "Blackjack-v1",
        .observation = {leaf("player_sum", 31), leaf("dealer_card", 10), leaf("usable_ace", 1)},
        .action = Discrete{.n = 2}};
  }

  const EnvironmentSpec& spec() const override { return *spec_; }

  void Reset(Rng& rng, StepRow out) override {
    player_ = dealer_ = {};
    dealer_card_ = Draw(rng);
    dealer_.Add(dealer_card_);
    dealer_.Add(Draw(rng));
    for (int i = 0; i < 2; ++i) player_.Add(Draw(rng));
    Observe(out.observation);
    out.First();
  }

  // Actions 0 stick, 1 hit.
  void Step(ActionRow action, Rng& rng, StepRow out) override {
    double reward = 0;
    const bool hit = action.index() == 1;
    if (hit) {
      player_.Add(Draw(rng));
      reward = player_.score() == 0 ? -1 : 0;
    } else {
      while (dealer_.sum() < 17) dealer_.Add(Draw(rng));
      const int64_t lead = player_.score() - dealer_.score();
      reward = lead > 0 ? 1 : lead < 0 ? -1 : 0;
      if (sab_) {
        if (player_.natural() && !dealer_.natural()) reward = 1;
      } else if (natural_ && player_.natural() && reward == 1) {
        reward = 1.5;
      }
    }
    Observe(out.observation);
    out.Next(reward, !hit || reward < 0);
  }

  // Of player and dealer the total with aces as 1, the number of cards and whether there is an ace;
  // the dealer's open card; then the cards that are drawn next, before random ones.
  void GetState(std::vector<double>& state) const override {
    state.clear();
    for (const Hand& hand : {player_, dealer_}) {
      state.push_back(static_cast<double>(hand.total));
      state.push_back(static_cast<double>(hand.cards));
      state.push_back(hand.ace ? 1 : 0);
    }
    state.push_back(static_cast<double>(dealer_card_));
    state.insert(state.end(), deck_.begin() + static_cast<std::ptrdiff_t>(drawn_), deck_.end());
  }
  void SetState(std::span<const double> state) override {
    WEFT_CHECK_GE(state.size(), kHands) << "state of Blackjack-v1";
    for (size_t i = 0; i < state.size(); ++i) {
      WEFT_CHECK(state[i] >= (i >= kHands ? 1 : 0) && state[i] <= (i < kHands ? 31 : 10))
          << "state of Blackjack-v1: value " << i << " is " << state[i];
    }
    const auto hand = [&](size_t i) {
      return Hand{static_cast<int64_t>(state[i]), static_cast<int64_t>(state[i + 1]),
                  state[i + 2] != 0};
    };
    player_ = hand(0);
    dealer_ = hand(3);
    dealer_card_ = static_cast<int64_t>(state[6]);
    deck_.assign(state.begin() + kHands, state.end());
    drawn_ = 0;
  }
  void Observe(ObservationRow out) override {
    *out.Leaf<int64_t>(0) = player_.sum();
    *out.Leaf<int64_t>(1) = dealer_card_;
    *out.Leaf<int64_t>(2) = player_.usable_ace() ? 1 : 0;
  }
  std::string Text() const override {
    const std::string dealer = dealer_.cards > 2 ? "has " + std::to_string(dealer_.sum())
                                                 : "shows " + std::to_string(dealer_card_);
    return "player " + std::to_string(player_.sum()) +
           (player_.usable_ace() ? " with a usable ace" : "") + ", dealer " + dealer;
  }

 private:
  static constexpr size_t kHands = 7;  // numbers of the state before the next cards

  // 1 (ace) to 10; a ten and three court cards count 10.
  int64_t Draw(Rng& rng) {
    if (drawn_ < deck_.size()) return static_cast<int64_t>(deck_[drawn_++]);
    return std::min<int64_t>(static_cast<int64_t>(rng.Below(13)) + 1, 10);
  }

  Hand player_, dealer_;
  int64_t dealer_card_ = 0;
  std::vector<double> deck_;  // drawn before random cards
  size_t drawn_ = 0;          // of deck_
  bool natural_, sab_;
  std::unique_ptr<EnvironmentSpec> spec_;
};

WEFT_REGISTER_ENVIRONMENT(Blackjack, "Blackjack-v1",
                          "stick or hit against the dealer: 3 integers, 2 actions")

}  // namespace
}  // namespace weft
