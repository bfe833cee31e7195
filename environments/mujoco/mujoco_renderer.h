// Pictures of MuJoCo's simulations, by its own renderer in offscreen OpenGL (gl_context.h).
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "environments/drawing/picture.h"

struct mjModel_;
struct mjData_;

namespace weft {

// Where the camera stands that belongs to no body.
struct FreeCamera {
  double azimuth = 90, elevation = -45;  // degrees
  double distance = 0;                   // m
  std::array<double, 3> look_at{};       // m
};

// The renderers of one model. Each picture takes one of its size that is idle and makes another
// when there is none: there are as many as threads render at once, and whichever renders, the
// picture is the same. Safe to use from all threads.
class MujocoRenderers {
 public:
  // The one object of a model, which lives as long as the process.
  static std::shared_ptr<MujocoRenderers> Of(const mjModel_* model);
  explicit MujocoRenderers(const mjModel_* model);
  ~MujocoRenderers();

  // model may be a copy with other numbers than the one of Of. camera: name or number of one of the
  // model's; "" and "-1": the free one. Throws Error(kConfig) for a camera that the model lacks,
  // Error(kUnavailable) without OpenGL. The data change in nothing that a step reads.
  void Render(const mjModel_& model, mjData_& data, const FreeCamera& free,
              const std::string& camera, Picture& picture);

 private:
  class Renderer;

  const mjModel_* model_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Renderer>> idle_;
};

// The free camera as MuJoCo's own viewer and dm_control set it up.
FreeCamera DefaultFreeCamera(const mjModel_& model);

}  // namespace weft
