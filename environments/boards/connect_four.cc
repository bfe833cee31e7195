#include "environments/boards/connect_four.h"

#include "environments/boards/zobrist.h"

namespace weft {

GameSpec ConnectFour::Spec() const {
  Symmetry identity, mirror;
  for (int column = 0; column < kColumns; ++column) {
    identity.move.push_back(static_cast<Move>(column));
    mirror.move.push_back(static_cast<Move>(kColumns - 1 - column));
  }
  for (int cell = 0; cell < kCells; ++cell) {
    const int column = cell % kColumns;
    identity.cell.push_back(cell);
    mirror.cell.push_back(cell - column + kColumns - 1 - column);
  }
  return {.id = "ConnectFour-v0",
          .actions = kColumns,
          .planes = {2, kRows, kColumns},
          .longest = kCells,
          .symmetries = {identity, mirror}};
}

void ConnectFour::Observe(std::span<uint8_t> planes) const {
  const uint64_t other = own_ ^ taken_;
  size_t cell = 0;
  for (int row = kRows - 1; row >= 0; --row) {
    for (int column = 0; column < kColumns; ++column, ++cell) {
      const int bit = column * kBits + row;
      planes[cell] = static_cast<uint8_t>((own_ >> bit) & 1);
      planes[kCells + cell] = static_cast<uint8_t>((other >> bit) & 1);
    }
  }
}

uint64_t ConnectFour::Hash() const {
  // The lowest free bits tell which cells are taken; 49 bits in all, so hashes never collide.
  uint64_t bottoms = 0;
  for (Move column = 0; column < kColumns; ++column) bottoms |= Bottom(column);
  return Scatter(own_ + taken_ + bottoms);
}

std::string ConnectFour::Text() const {
  const uint64_t first = ToMove() == 0 ? own_ : own_ ^ taken_;
  std::string text;
  for (int row = kRows - 1; row >= 0; --row) {
    for (int column = 0; column < kColumns; ++column) {
      const int bit = column * kBits + row;
      text += ((taken_ >> bit) & 1) == 0 ? '.' : ((first >> bit) & 1) != 0 ? 'X' : 'O';
      text += column == kColumns - 1 ? '\n' : ' ';
    }
  }
  return text + "0 1 2 3 4 5 6\n";
}

namespace {
WEFT_REGISTER_GAME(ConnectFour, "ConnectFour-v0",
                   "four in a row against an opponent: 7 columns of 6 cells, 7 actions")
}  // namespace

}  // namespace weft
