// The point of a robot whose way over the ground is paid for. It belongs to the last stage of the
// integrator, not to the state, so a robot saves it with its simulation.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

namespace weft {

struct GroundTrack {
  double x = 0, y = 0;                    // m
  double x_velocity = 0, y_velocity = 0;  // m/s, mean over the last step

  void Place(double new_x, double new_y) { *this = {.x = new_x, .y = new_y}; }
  void Move(double new_x, double new_y, double dt) {
    *this = {new_x, new_y, (new_x - x) / dt, (new_y - y) / dt};
  }
};

// The first names of the robots' info.
inline std::vector<std::string> GroundInfo() {
  return {"x_position", "y_position", "distance_from_origin", "x_velocity", "y_velocity"};
}

// Writes the values of GroundInfo for a robot that stands at x, y.
inline void WriteGroundInfo(double x, double y, const GroundTrack& track, std::span<double> info) {
  info[0] = x;
  info[1] = y;
  info[2] = std::sqrt(x * x + y * y);
  info[3] = track.x_velocity;
  info[4] = track.y_velocity;
}

}  // namespace weft
