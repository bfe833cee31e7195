// The board of Go: stones, chains and their liberties, captures, and positional superko (no move
// may bring back a position that has been on the board). Moves are played and taken back in place,
// at a cost that does not depend on the board's size, but for what is captured and merged.
//
// Points are numbered row by row with a margin around the board, so that each has four neighbours:
// Point(cell) is that of the cell row * size + column.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace weft {

enum class Stone : uint8_t { kEmpty, kBlack, kWhite, kMargin };

constexpr Stone Other(Stone stone) {
  return stone == Stone::kBlack ? Stone::kWhite : Stone::kBlack;
}

class GoBoard {
 public:
  static constexpr int kMostSize = 19;

  // most_moves: that will be on the board at once, passes not counted.
  GoBoard(int size, int64_t most_moves);

  void Clear();
  int size() const { return size_; }
  int cells() const { return size_ * size_; }
  Stone at(int cell) const { return stone_[Point(cell)]; }

  // Whether the stone has a liberty there, if need be by capturing, and makes a new position.
  bool CanPlace(int cell, Stone stone) const;
  // Places a stone where it can be, and takes off the board what has no liberty left.
  void Place(int cell, Stone stone);
  // Takes back the last Place.
  void TakeBack();

  uint64_t hash() const { return hashes_[placed_]; }  // of the stones
  int64_t placed() const { return static_cast<int64_t>(placed_); }
  // Stones of one colour and the empty points that only they reach (Chinese rules).
  int64_t Area(Stone stone) const;

  // The i-th Place.
  int cell_placed(int64_t i) const { return Cell(log_[static_cast<size_t>(i)].point); }
  // Calls visit(cell) for what the i-th Place captured.
  template <class Function>
  void EachCaptured(int64_t i, const Function& visit) const {
    const auto index = static_cast<size_t>(i);
    const size_t end = index + 1 < placed_ ? log_[index + 1].captures : captured_count_;
    for (size_t k = log_[index].captures; k < end; ++k) visit(Cell(captured_[k]));
  }

 private:
  using PointIndex = int16_t;
  struct Placed {
    PointIndex point;
    uint16_t captures;  // where those of this move begin in captured_
  };
  // Heads of points without a stone, and of stones whose chain is being found.
  static constexpr PointIndex kNone = -1, kLoose = -2;
  static constexpr size_t kFilterBits = 2048;

  size_t Point(int cell) const { return point_[static_cast<size_t>(cell)]; }
  int Cell(PointIndex point) const { return (point / stride_ - 1) * size_ + point % stride_ - 1; }
  std::array<size_t, 4> Neighbours(size_t point) const {
    const auto stride = static_cast<size_t>(stride_);
    return {point - 1, point + 1, point - stride, point + stride};
  }
  bool IsStone(size_t point) const {
    return stone_[point] == Stone::kBlack || stone_[point] == Stone::kWhite;
  }
  size_t Head(size_t point) const { return static_cast<size_t>(head_[point]); }

  // Whether the filter has the hash; if so, it may be in the history.
  bool MayHaveSeen(uint64_t hash) const {
    const uint64_t bit = hash % kFilterBits;
    return (filter_[bit / 64] >> bit % 64 & 1) != 0;
  }
  bool Seen(uint64_t hash) const;
  void Remember(uint64_t hash);
  void Merge(size_t big, size_t small);
  void Capture(size_t head);
  void FindChain(size_t point);

  int size_, stride_;
  std::vector<uint16_t> point_;  // [cells]
  // By point. A chain is a circular list; what belongs to it as a whole is kept at its head.
  std::vector<Stone> stone_;
  std::vector<PointIndex> head_, next_;
  std::vector<int16_t> stones_;     // of the chain
  std::vector<int16_t> liberties_;  // of the chain: pairs of a stone and an empty neighbour
  std::vector<uint64_t> chain_hash_;
  // History: hashes_[i] is that of the stones after i of them were placed.
  std::vector<uint64_t> hashes_;
  std::vector<Placed> log_;
  std::vector<PointIndex> captured_;
  size_t placed_ = 0, captured_count_ = 0;
  // Bits of all hashes that were ever in the history, so that most need not be looked for.
  std::array<uint64_t, kFilterBits / 64> filter_{};
};

}  // namespace weft
