#include "environments/boards/go_board.h"

#include <algorithm>

#include "environments/boards/zobrist.h"

namespace weft {
namespace {

uint64_t Key(size_t point, Stone stone) {
  return ZobristKey(2 * point + (stone == Stone::kWhite ? 1 : 0));
}

}  // namespace

GoBoard::GoBoard(int size, int64_t most_moves) : size_(size), stride_(size + 1) {
  for (int cell = 0; cell < cells(); ++cell)
    point_.push_back(static_cast<uint16_t>((cell / size + 1) * stride_ + cell % size + 1));
  // A row above and one below; the margin of one row's right side is that of the next one's left.
  const auto points = static_cast<size_t>((size + 2) * stride_);
  const auto moves = static_cast<size_t>(most_moves);
  stone_.resize(points);
  head_.resize(points);
  next_.resize(points);
  stones_.resize(points);
  liberties_.resize(points);
  chain_hash_.resize(points);
  hashes_.resize(moves + 1);
  log_.resize(moves);
  captured_.resize(moves);  // every captured stone was placed
  Clear();
}

void GoBoard::Clear() {
  std::ranges::fill(stone_, Stone::kMargin);
  std::ranges::fill(head_, kNone);
  for (const uint16_t point : point_) stone_[point] = Stone::kEmpty;
  placed_ = captured_count_ = 0;
  hashes_[0] = 0;
  filter_.fill(0);
  Remember(0);
}

bool GoBoard::CanPlace(int cell, Stone stone) const {
  const size_t point = Point(cell);
  if (stone_[point] != Stone::kEmpty) return false;
  const auto neighbours = Neighbours(point);
  bool breathes = false;
  for (const size_t neighbour : neighbours) breathes |= stone_[neighbour] == Stone::kEmpty;
  // While nothing has been captured, a further stone makes more stones than ever before.
  if (breathes && captured_count_ == 0) return true;

  uint64_t captured = 0;  // hash of the stones that would be captured
  for (size_t i = 0; i < neighbours.size(); ++i) {
    const size_t neighbour = neighbours[i];
    if (!IsStone(neighbour)) continue;
    // The point is a chain's last liberty when all its pairs are with this point.
    const PointIndex head = head_[neighbour];
    const int pairs = liberties_[static_cast<size_t>(head)];
    int here = 0, before = 0;
    if (pairs <= 4) {
      for (size_t k = 0; k < neighbours.size(); ++k) {
        const bool same = head_[neighbours[k]] == head;
        here += same;
        before += same && k < i;
      }
    }
    if (stone_[neighbour] == stone) {
      breathes |= pairs != here;
    } else if (pairs == here && before == 0) {
      captured ^= chain_hash_[static_cast<size_t>(head)];
      breathes = true;
    }
  }
  if (!breathes) return false;
  const uint64_t after = hash() ^ Key(point, stone) ^ captured;
  return !MayHaveSeen(after) || !Seen(after);
}

void GoBoard::Place(int cell, Stone stone) {
  const size_t point = Point(cell);
  const auto neighbours = Neighbours(point);
  log_[placed_] = {static_cast<PointIndex>(point), static_cast<uint16_t>(captured_count_)};
  hashes_[placed_ + 1] = hash() ^ Key(point, stone);
  ++placed_;

  stone_[point] = stone;
  head_[point] = next_[point] = static_cast<PointIndex>(point);
  stones_[point] = 1;
  liberties_[point] = 0;
  chain_hash_[point] = Key(point, stone);
  for (const size_t neighbour : neighbours) {
    if (stone_[neighbour] == Stone::kEmpty) {
      ++liberties_[point];
    } else if (stone_[neighbour] != Stone::kMargin) {
      --liberties_[Head(neighbour)];
    }
  }
  for (const size_t neighbour : neighbours) {
    if (stone_[neighbour] != stone || Head(neighbour) == Head(point)) continue;
    const size_t mine = Head(point), its = Head(neighbour);
    stones_[mine] > stones_[its] ? Merge(mine, its) : Merge(its, mine);
  }
  for (const size_t neighbour : neighbours) {
    if (stone_[neighbour] == Other(stone) && liberties_[Head(neighbour)] == 0)
      Capture(Head(neighbour));
  }
  Remember(hash());
}

void GoBoard::Merge(size_t big, size_t small) {
  size_t point = small;
  do {
    head_[point] = static_cast<PointIndex>(big);
    point = static_cast<size_t>(next_[point]);
  } while (point != small);
  std::swap(next_[big], next_[small]);
  stones_[big] = static_cast<int16_t>(stones_[big] + stones_[small]);
  liberties_[big] = static_cast<int16_t>(liberties_[big] + liberties_[small]);
  chain_hash_[big] ^= chain_hash_[small];
}

void GoBoard::Capture(size_t head) {
  hashes_[placed_] ^= chain_hash_[head];
  size_t point = head;
  do {
    stone_[point] = Stone::kEmpty;
    head_[point] = kNone;
    captured_[captured_count_++] = static_cast<PointIndex>(point);
    for (const size_t neighbour : Neighbours(point)) {
      if (IsStone(neighbour)) ++liberties_[Head(neighbour)];
    }
    point = static_cast<size_t>(next_[point]);
  } while (point != head);
}

void GoBoard::TakeBack() {
  const Placed placed = log_[--placed_];
  const auto point = static_cast<size_t>(placed.point);
  const Stone stone = stone_[point];
  const auto captured =
      std::span(captured_).subspan(placed.captures, captured_count_ - placed.captures);
  captured_count_ = placed.captures;

  for (auto i = static_cast<size_t>(next_[point]); i != point; i = static_cast<size_t>(next_[i]))
    head_[i] = kLoose;
  stone_[point] = Stone::kEmpty;
  head_[point] = kNone;
  for (const size_t neighbour : Neighbours(point)) {
    if (IsStone(neighbour) && head_[neighbour] != kLoose) ++liberties_[Head(neighbour)];
  }
  for (const PointIndex back : captured) {
    stone_[static_cast<size_t>(back)] = Other(stone);
    head_[static_cast<size_t>(back)] = kLoose;
  }
  for (const PointIndex back : captured) {
    for (const size_t neighbour : Neighbours(static_cast<size_t>(back))) {
      if (IsStone(neighbour) && head_[neighbour] != kLoose) --liberties_[Head(neighbour)];
    }
  }
  // Now that the stones are as before, the chains that changed are found anew.
  for (const size_t neighbour : Neighbours(point)) {
    if (IsStone(neighbour) && head_[neighbour] == kLoose) FindChain(neighbour);
  }
  for (const PointIndex back : captured) {
    if (head_[static_cast<size_t>(back)] == kLoose) FindChain(static_cast<size_t>(back));
  }
}

// Makes a chain of the loose stones that hang together with that at `point`; its list grows at the
// end while it is walked.
void GoBoard::FindChain(size_t point) {
  const Stone stone = stone_[point];
  const auto head = static_cast<PointIndex>(point);
  head_[point] = next_[point] = head;
  stones_[point] = 1;
  liberties_[point] = 0;
  chain_hash_[point] = 0;
  size_t end = point, at = point;
  do {
    chain_hash_[point] ^= Key(at, stone);
    for (const size_t neighbour : Neighbours(at)) {
      if (stone_[neighbour] == Stone::kEmpty) {
        ++liberties_[point];
      } else if (stone_[neighbour] == stone && head_[neighbour] == kLoose) {
        head_[neighbour] = next_[neighbour] = head;
        next_[end] = static_cast<PointIndex>(neighbour);
        end = neighbour;
        ++stones_[point];
      }
    }
    at = static_cast<size_t>(next_[at]);
  } while (at != point);
}

bool GoBoard::Seen(uint64_t hash) const {
  const auto end = hashes_.begin() + static_cast<std::ptrdiff_t>(placed_ + 1);
  return std::find(hashes_.begin(), end, hash) != end;
}

void GoBoard::Remember(uint64_t hash) {
  const uint64_t bit = hash % kFilterBits;
  filter_[bit / 64] |= uint64_t{1} << bit % 64;
}

int64_t GoBoard::Area(Stone stone) const {
  // Each empty region is walked once, by a list as of a chain.
  std::array<bool, (kMostSize + 2) * (kMostSize + 1)> visited{};
  std::array<uint16_t, kMostSize * kMostSize> region;
  int64_t area = 0;
  for (const uint16_t first : point_) {
    area += stone_[first] == stone;
    if (stone_[first] != Stone::kEmpty || visited[first]) continue;
    bool reaches = false, other_reaches = false;
    size_t found = 0;
    region[found++] = first;
    visited[first] = true;
    for (size_t i = 0; i < found; ++i) {
      for (const size_t neighbour : Neighbours(region[i])) {
        reaches |= stone_[neighbour] == stone;
        other_reaches |= stone_[neighbour] == Other(stone);
        if (stone_[neighbour] != Stone::kEmpty || visited[neighbour]) continue;
        visited[neighbour] = true;
        region[found++] = static_cast<uint16_t>(neighbour);
      }
    }
    if (reaches && !other_reaches) area += static_cast<int64_t>(found);
  }
  return area;
}

}  // namespace weft
