// MiniGrid-MultiRoom: a chain of rooms behind closed doors, the goal in the last, as minigrid 3.2's
// envs/multiroom.py.
#include <array>
#include <utility>

#include "environments/minigrid/grid_world.h"
#include "environments/register_environment.h"

namespace weft {
namespace {

constexpr int64_t kLeastRoom = 4;          // cells along a side, walls included
constexpr int64_t kMostLayouts = 100'000;  // tried for one episode

class GridMultiRoom final : public GridWorld {
 public:
  struct Arguments : GridWorldArguments {
    Arguments(const char* environment_id, int64_t rooms, int64_t room_size)
        : GridWorldArguments(environment_id),
          min_num_rooms(rooms),
          max_num_rooms(rooms),
          max_room_size(room_size) {}
    void Fields(FieldVisitor& v) override {  // keys are the original's
      v.Field("minNumRooms", min_num_rooms, "fewest rooms", Range::Between(1, 64));
      v.Field("maxNumRooms", max_num_rooms, "most rooms", Range::Between(1, 64));
      v.Field("maxRoomSize", max_room_size, "most cells along the side of a room, walls included",
              Range::Between(kLeastRoom, 255));
      v.Field("width", width, "cells of the grid from left to right", Range::Between(8, 255));
      v.Field("height", height, "cells of the grid from top to bottom", Range::Between(8, 255));
      GridWorldArguments::Fields(v);
    }
    void Check() const override {
      GridWorldArguments::Check();
      if (max_num_rooms < min_num_rooms)
        throw ConfigProblem("maxNumRooms", "must be at least minNumRooms");
    }

    int64_t min_num_rooms, max_num_rooms, max_room_size;
    int64_t width = 25, height = 25;
  };

  explicit GridMultiRoom(const Arguments& arguments)
      : GridWorld(arguments, arguments.width, arguments.height, 20 * arguments.max_num_rooms,
                  Rules()),
        min_rooms_(arguments.min_num_rooms),
        max_rooms_(arguments.max_num_rooms),
        max_room_size_(arguments.max_room_size) {
    rooms_.reserve(static_cast<size_t>(max_rooms_));
  }

 private:
  struct Room {
    Rectangle area;
    int64_t door_x, door_y;  // of the entry
  };
  enum Wall { kRightWall, kBottomWall, kLeftWall, kTopWall };

  void Generate(Rng& rng) override {
    const int64_t count = Between(min_rooms_, max_rooms_ + 1, rng);
    int64_t layouts = 0;
    do {
      if (++layouts > kMostLayouts) {
        throw Error(ErrorCode::kInvalidArgument,
                    spec().id + ": the grid has no place for " + std::to_string(count) + " rooms");
      }
      rooms_.clear();
      const int64_t x = Between(0, width() - 2, rng);
      AddRooms(count, kLeftWall, x, Between(0, width() - 2, rng), rng);
    } while (static_cast<int64_t>(rooms_.size()) < count);

    // In the order of their names; neighbouring doors differ.
    constexpr std::array kColours{GridColour::kBlue,   GridColour::kGreen, GridColour::kGrey,
                                  GridColour::kPurple, GridColour::kRed,   GridColour::kYellow};
    int64_t colour = -1;
    for (size_t i = 0; i < rooms_.size(); ++i) {
      SurroundWithWalls(rooms_[i].area);
      if (i == 0) continue;
      const int64_t other = Between(0, colour < 0 ? 6 : 5, rng);
      colour = colour < 0 || other < colour ? other : other + 1;
      Set(rooms_[i].door_x, rooms_[i].door_y,
          {GridObject::kDoor, kColours[static_cast<size_t>(colour)], DoorState::kClosed});
    }
    PlaceAgent(rooms_.front().area, rng);
    Place(kGridGoal, rooms_.back().area, rng);
  }

  // In [low, high).
  static int64_t Between(int64_t low, int64_t high, Rng& rng) {
    return low + static_cast<int64_t>(rng.Below(static_cast<uint64_t>(high - low)));
  }

  // Adds a room that is entered at (door_x, door_y) in its wall `entry`, and up to `left` - 1 that
  // follow it. False when that room does not fit.
  bool AddRooms(int64_t left, int entry, int64_t door_x, int64_t door_y, Rng& rng) {
    const int64_t w = Between(kLeastRoom, max_room_size_ + 1, rng);
    const int64_t h = Between(kLeastRoom, max_room_size_ + 1, rng);
    int64_t x = door_x, y = door_y;
    if (!rooms_.empty()) {
      if (entry == kRightWall) x = door_x - w + 1;
      if (entry == kBottomWall) y = door_y - h + 1;
      if (entry == kRightWall || entry == kLeftWall) {
        y = Between(door_y - h + 2, door_y, rng);
      } else {
        x = Between(door_x - w + 2, door_x, rng);
      }
    }
    if (!Fits({x, y, w, h})) return false;
    rooms_.push_back({{x, y, w, h}, door_x, door_y});
    if (left == 1) return true;
    for (int i = 0; i < 8; ++i) {
      const auto other = static_cast<int>(Between(0, 3, rng));
      const int exit = other < entry ? other : other + 1;
      int64_t exit_x = exit == kRightWall ? x + w - 1 : x,
              exit_y = exit == kBottomWall ? y + h - 1 : y;
      if (exit == kRightWall || exit == kLeftWall) {
        exit_y = y + Between(1, h - 1, rng);
      } else {
        exit_x = x + Between(1, w - 1, rng);
      }
      if (AddRooms(left - 1, (exit + 2) % 4, exit_x, exit_y, rng)) break;
    }
    return true;
  }

  // Inside the grid and apart from all rooms but the last, whose wall it shares.
  bool Fits(const Rectangle& room) const {
    if (room.x < 0 || room.y < 0 || room.x + room.width > width() ||
        room.y + room.height >= height()) {
      return false;
    }
    for (size_t i = 0; i + 1 < rooms_.size(); ++i) {
      const Rectangle& other = rooms_[i].area;
      const bool apart = room.x + room.width < other.x || other.x + other.width <= room.x ||
                         room.y + room.height < other.y || other.y + other.height <= room.y;
      if (!apart) return false;
    }
    return true;
  }

  int64_t min_rooms_, max_rooms_, max_room_size_;
  std::vector<Room> rooms_;  // of the episode
};

constexpr char kSummary[] = "pass a chain of closed rooms: 7 x 7 cells seen, 7 actions";
WEFT_REGISTER_ENVIRONMENT(GridMultiRoom, "MiniGrid-MultiRoom-N2-S4-v0", kSummary,
                          "MiniGrid-MultiRoom-N2-S4-v0", 2, 4)
WEFT_REGISTER_ENVIRONMENT(GridMultiRoom, "MiniGrid-MultiRoom-N4-S5-v0", kSummary,
                          "MiniGrid-MultiRoom-N4-S5-v0", 6, 5)
WEFT_REGISTER_ENVIRONMENT(GridMultiRoom, "MiniGrid-MultiRoom-N4-S5-v1", kSummary,
                          "MiniGrid-MultiRoom-N4-S5-v1", 4, 5)
WEFT_REGISTER_ENVIRONMENT(GridMultiRoom, "MiniGrid-MultiRoom-N6-v0", kSummary,
                          "MiniGrid-MultiRoom-N6-v0", 6, 10)

}  // namespace
}  // namespace weft
