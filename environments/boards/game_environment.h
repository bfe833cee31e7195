// A game as an environment for one agent: it plays one seat, opponents the others. The reward of
// the last move is the game's outcome, 1, 0 or -1, all others are 0. Observations are those of the
// game when it is the agent's turn; action_mask tells its legal moves (all of them at the end,
// where any action is ignored).
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "environments/boards/opponent.h"
#include "environments/register_environment.h"

namespace weft {

struct GameArguments : Config {
  void Fields(FieldVisitor& v) override;
  // The seat for an episode.
  int DrawSeat(int players, Rng& rng) const;

  std::string opponent = "random", seat = "random", illegal_move = "error";
};

// The spec of the environment of a game.
EnvironmentSpec GameEnvironmentSpec(const GameSpec& game);
[[noreturn]] void RefuseMove(const Game& game, Move move);
// A move of a saved game: throws unless it is legal here.
Move CheckedMove(const Game& game, double value);

// G: a final Game with a nested struct Arguments : GameArguments, the constructor G(const
// Arguments&) and the constant kStepNanoseconds.
template <class G>
class GameEnvironment final : public Environment {
 public:
  using Arguments = typename G::Arguments;
  static constexpr double kStepNanoseconds = G::kStepNanoseconds;

  explicit GameEnvironment(const Arguments& arguments)
      : arguments_(std::make_unique<Arguments>(arguments)),
        game_(arguments),
        spec_(std::make_unique<EnvironmentSpec>(GameEnvironmentSpec(game_.Spec()))),
        players_(game_.Spec().players),
        moves_(static_cast<size_t>(spec_->action.template As<Discrete>()->n)),
        opponent_(Opponents().At(arguments.opponent).make(game_)) {}

  const EnvironmentSpec& spec() const override { return *spec_; }

  void Reset(Rng& rng, StepRow out) override {
    game_.Start();
    forfeited_ = false;
    seat_ = arguments_->DrawSeat(players_, rng);
    LetOthersMove(rng);
    Observe(out.observation);
    out.First();
  }

  void Step(ActionRow action, Rng& rng, StepRow out) override {
    const auto move = static_cast<Move>(action.index());
    if (!game_.IsLegal(move)) {
      if (arguments_->illegal_move == "error") RefuseMove(game_, move);
      forfeited_ = true;
    } else {
      game_.Play(move);
      LetOthersMove(rng);
    }
    Observe(out.observation);
    out.Next(forfeited_ ? -1 : game_.Outcome(seat_), Over());
  }

  // The agent's seat, then the moves of all players.
  void GetState(std::vector<double>& state) const override {
    state.assign(1, seat_);
    const auto moves = game_.Moves();
    state.insert(state.end(), moves.begin(), moves.end());
    if (forfeited_) state.push_back(-1);
  }
  void SetState(std::span<const double> state) override {
    WEFT_CHECK(!state.empty() && state[0] >= 0 && state[0] < players_)
        << "the state of " << spec_->id << " begins with a seat";
    game_.Start();
    seat_ = static_cast<int>(state[0]);
    forfeited_ = state.size() > 1 && state.back() == -1;
    state = state.subspan(1, state.size() - (forfeited_ ? 2 : 1));
    for (const double move : state) game_.Play(CheckedMove(game_, move));
  }

  void Observe(ObservationRow out) override {
    game_.Observe(
        {out.Leaf<uint8_t>(0), static_cast<size_t>(spec_->observation[0].shape.elements())});
    auto* mask = out.Leaf<uint8_t>(1);
    std::fill_n(mask, moves_.size(), Over() ? 1 : 0);
    const auto count = static_cast<size_t>(game_.LegalMoves(moves_));
    for (size_t i = 0; i < count; ++i) mask[moves_[i]] = 1;
  }

  std::string Text() const override { return game_.Text(); }

 private:
  bool Over() const { return forfeited_ || game_.Over(); }
  void LetOthersMove(Rng& rng) {
    while (!game_.Over() && game_.ToMove() != seat_) game_.Play(opponent_->Choose(game_, rng));
  }

  std::unique_ptr<const Arguments> arguments_;
  G game_;
  std::unique_ptr<EnvironmentSpec> spec_;
  int players_, seat_ = 0;
  bool forfeited_ = false;   // by an illegal move
  std::vector<Move> moves_;  // scratch
  std::unique_ptr<Opponent> opponent_;
};

template <class G>
GameEntry MakeGameEntry() {
  return {.make = [](const Config& config) {
    const auto* arguments = dynamic_cast<const typename G::Arguments*>(&config);
    WEFT_CHECK(arguments != nullptr) << "these are the arguments of another environment";
    return std::make_unique<G>(*arguments);
  }};
}

// Registers a game and the environment in which it is played; further arguments go to the
// constructor of ClassName::Arguments.
#define WEFT_REGISTER_GAME_VARIABLE_(line) WEFT_REGISTER_JOIN_(weft_registered_game_, line)
#define WEFT_REGISTER_GAME(ClassName, id, summary, ...)                                         \
  WEFT_REGISTER_ENVIRONMENT(GameEnvironment<ClassName>, id, summary __VA_OPT__(, ) __VA_ARGS__) \
  [[maybe_unused]] const bool WEFT_REGISTER_GAME_VARIABLE_(__LINE__) =                          \
      ::weft::Games().Add(id, ::weft::MakeGameEntry<ClassName>());

}  // namespace weft
