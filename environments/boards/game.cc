#include "environments/boards/game.h"

namespace weft {

Registry<GameEntry>& Games() {
  // Never destroyed: entries are read while the process ends.
  static auto& registry = *new Registry<GameEntry>("game");
  return registry;
}

void TransformPlanes(const Symmetry& symmetry, std::span<const uint8_t> from,
                     std::span<uint8_t> to) {
  const size_t cells = symmetry.cell.size();
  for (size_t begin = 0; begin < from.size(); begin += cells) {
    for (size_t i = 0; i < cells; ++i)
      to[begin + static_cast<size_t>(symmetry.cell[i])] = from[begin + i];
  }
}

std::vector<Symmetry> SquareSymmetries(int64_t size, bool pass) {
  std::vector<Symmetry> symmetries;
  for (int turned = 0; turned < 8; ++turned) {
    Symmetry symmetry;
    for (int64_t cell = 0; cell < size * size; ++cell) {
      int64_t row = cell / size, column = cell % size;
      if (turned & 4) std::swap(row, column);
      if (turned & 2) row = size - 1 - row;
      if (turned & 1) column = size - 1 - column;
      symmetry.cell.push_back(static_cast<int32_t>(row * size + column));
      symmetry.move.push_back(static_cast<Move>(row * size + column));
    }
    if (pass) symmetry.move.push_back(static_cast<Move>(size * size));
    symmetries.push_back(std::move(symmetry));
  }
  return symmetries;
}

namespace {

char ColumnName(int64_t column) {
  return "ABCDEFGHJKLMNOPQRSTUVWXYZ"[column];
}

}  // namespace

std::string CellName(int64_t cell, int64_t size) {
  return ColumnName(cell % size) + std::to_string(size - cell / size);
}

std::string SquareText(int64_t size, const std::function<char(int64_t cell)>& symbol) {
  std::string text, columns = "  ";
  for (int64_t column = 0; column < size; ++column) {
    columns += ' ';
    columns += ColumnName(column);
  }
  for (int64_t row = 0; row < size; ++row) {
    const std::string name = std::to_string(size - row);
    text += std::string(2 - name.size(), ' ') + name;
    for (int64_t column = 0; column < size; ++column) {
      text += ' ';
      text += symbol(row * size + column);
    }
    text += '\n';
  }
  return text + columns + '\n';
}

}  // namespace weft
