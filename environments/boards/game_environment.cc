#include "environments/boards/game_environment.h"

namespace weft {

void GameArguments::Fields(FieldVisitor& v) {
  v.Choice("opponent", opponent, Opponents().Names(), "who plays the other seats");
  v.Choice("seat", seat, {"random", "first", "second"}, "whether the agent moves first or second");
  v.Choice("illegal_move", illegal_move, {"error", "loses"},
           "what an illegal move of the agent is");
}

int GameArguments::DrawSeat(int players, Rng& rng) const {
  if (seat == "random") return static_cast<int>(rng.Below(static_cast<uint64_t>(players)));
  return seat == "first" ? 0 : 1;
}

EnvironmentSpec GameEnvironmentSpec(const GameSpec& game) {
  return {.id = game.id,
          .observation = {{.name = "observation",
                           .shape = game.planes,
                           .dtype = DType::kUInt8,
                           .low = {0},
                           .high = {1}},
                          {.name = "action_mask",
                           .shape = {game.actions},
                           .dtype = DType::kUInt8,
                           .low = {0},
                           .high = {1}}},
          .action = Discrete{.n = game.actions}};
}

void RefuseMove(const Game& game, Move move) {
  throw Error(ErrorCode::kInvalidArgument,
              game.Spec().id + ": the move " + std::to_string(move) + " (" + game.MoveText(move) +
                  ") is not legal here (illegal_move: loses ends the game instead):\n" +
                  game.Text());
}

Move CheckedMove(const Game& game, double value) {
  const GameSpec spec = game.Spec();
  WEFT_CHECK(value >= 0 && value < static_cast<double>(spec.actions))
      << "state of " << spec.id << ": there is no move " << value;
  const auto move = static_cast<Move>(value);
  if (!game.IsLegal(move)) RefuseMove(game, move);
  return move;
}

}  // namespace weft
