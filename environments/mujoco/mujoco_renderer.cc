#include "environments/mujoco/mujoco_renderer.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mujoco/mujoco.h>

#include "base/check.h"
#include "base/scalar.h"
#include "environments/mujoco/gl_context.h"
#include "environments/mujoco/mujoco_guard.h"

namespace weft {
namespace {

constexpr int kMostGeoms = 2000;  // in a picture, decoration included
constexpr int kFreeCamera = -1;

// Making contexts loads OpenGL's functions into variables of libmujoco.
std::mutex& CreationMutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

int CameraNumber(const mjModel& model, const std::string& camera) {
  if (camera.empty()) return kFreeCamera;
  const int named = mj_name2id(&model, mjOBJ_CAMERA, camera.c_str());
  if (named >= 0) return named;
  int64_t number = 0;
  if (ParseNumber(camera, number).empty() && number >= kFreeCamera && number < model.ncam)
    return static_cast<int>(number);
  std::string names;
  for (int i = 0; i < model.ncam; ++i) {
    const char* name = mj_id2name(&model, mjOBJ_CAMERA, i);
    names += ", " + std::to_string(i) + (name == nullptr ? "" : " or " + std::string(name));
  }
  throw Error(ErrorCode::kConfig, "there is no camera " + camera + "; there are -1 (free)" + names);
}

// Ties a context to this thread while it lives.
class Binding {
 public:
  explicit Binding(GlContext& context) : context_(context) { context_.Bind(); }
  ~Binding() { context_.Release(); }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

 private:
  GlContext& context_;
};

}  // namespace

// One OpenGL context with the model's meshes and textures in it.
class MujocoRenderers::Renderer {
 public:
  // Of pictures of this size.
  Renderer(const mjModel& model, const Picture& picture)
      : width_(picture.width), height_(picture.height), context_(GlContext::Make()) {
    // Shares the model's arrays. Shadows of more texels than it takes to be sharp cost most of a
    // small picture's time.
    constexpr uint64_t kTexelsPerPixel = 8;
    const auto side = static_cast<uint64_t>(std::max(picture.width, picture.height));
    mjModel sized = model;
    sized.vis.global.offwidth = static_cast<int>(width_);
    sized.vis.global.offheight = static_cast<int>(height_);
    sized.vis.quality.shadowsize = std::min(
        sized.vis.quality.shadowsize, static_cast<int>(std::bit_ceil(kTexelsPerPixel * side)));
    const Binding binding(*context_);
    GuardMujoco([&] {
      mjv_defaultScene(&scene_);
      mjv_makeScene(&sized, &scene_, kMostGeoms);
      mjr_defaultContext(&resources_);
      mjr_makeContext(&sized, &resources_, mjFONTSCALE_100);
      mjr_setBuffer(mjFB_OFFSCREEN, &resources_);
      mjv_defaultOption(&option_);
    });
    option_.flags[mjVIS_RANGEFINDER] = 0;  // as dm_control
  }
  ~Renderer() {
    const Binding binding(*context_);
    mjr_freeContext(&resources_);
    mjv_freeScene(&scene_);
  }
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  bool Fits(const Picture& picture) const {
    return picture.width == width_ && picture.height == height_;
  }
  void Render(const mjModel& model, mjData& data, mjvCamera camera, Picture& picture) {
    const Binding binding(*context_);
    const mjrRect all{0, 0, static_cast<int>(width_), static_cast<int>(height_)};
    GuardMujoco([&] {
      // A terrain may be this simulation's own, and another one than in the last picture.
      for (mjtSize geom = 0; geom < model.ngeom; ++geom) {
        if (model.geom_type[geom] == mjGEOM_HFIELD)
          mjr_uploadHField(&model, &resources_, model.geom_dataid[geom]);
      }
      mjv_updateScene(&model, &data, &option_, nullptr, &camera, mjCAT_ALL, &scene_);
      mjr_render(all, &scene_, &resources_);
      mjr_readPixels(picture.pixels.data(), nullptr, all, &resources_);
    });
    for (int64_t y = 0; y < picture.height / 2; ++y) {  // OpenGL's first row is the lowest
      std::swap_ranges(picture.At(0, y), picture.At(0, y) + 3 * picture.width,
                       picture.At(0, picture.height - 1 - y));
    }
  }

 private:
  const int64_t width_, height_;
  const std::unique_ptr<GlContext> context_;
  mjvScene scene_;
  mjrContext resources_;
  mjvOption option_;
};

std::shared_ptr<MujocoRenderers> MujocoRenderers::Of(const mjModel* model) {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::map<const mjModel*, std::weak_ptr<MujocoRenderers>>;
  const std::lock_guard lock(mutex);
  auto renderers = all[model].lock();
  if (renderers == nullptr) all[model] = renderers = std::make_shared<MujocoRenderers>(model);
  return renderers;
}

MujocoRenderers::MujocoRenderers(const mjModel* model) : model_(model) {}
MujocoRenderers::~MujocoRenderers() = default;

void MujocoRenderers::Render(const mjModel& model, mjData& data, const FreeCamera& free,
                             const std::string& camera, Picture& picture) {
  mjvCamera view;
  mjv_defaultCamera(&view);
  view.fixedcamid = CameraNumber(model, camera);
  if (view.fixedcamid == kFreeCamera) {
    view.type = mjCAMERA_FREE;
    view.azimuth = free.azimuth;
    view.elevation = free.elevation;
    view.distance = free.distance;
    std::ranges::copy(free.look_at, view.lookat);
  } else {
    view.type = mjCAMERA_FIXED;
  }

  std::unique_ptr<Renderer> renderer;
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [&](const auto& idle) { return idle->Fits(picture); };
    if (const auto found = std::ranges::find_if(idle_, fits); found != idle_.end()) {
      renderer = std::move(*found);
      idle_.erase(found);
    }
  }
  if (renderer == nullptr) {
    const std::lock_guard lock(CreationMutex());
    renderer = std::make_unique<Renderer>(*model_, picture);
  }
  renderer->Render(model, data, view, picture);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(renderer));
}

FreeCamera DefaultFreeCamera(const mjModel& model) {
  mjvCamera camera;
  mjv_defaultFreeCamera(&model, &camera);
  FreeCamera free{
      .azimuth = camera.azimuth, .elevation = camera.elevation, .distance = camera.distance};
  std::ranges::copy(camera.lookat, free.look_at.begin());
  return free;
}

}  // namespace weft
