// OpenGL without a window, for MuJoCo's renderer. The library is loaded when the first context is
// made, so that nothing else needs it: libEGL with Mesa's surfaceless platform (or the default
// display), else libOSMesa. The environment variable MUJOCO_GL (egl or osmesa), which Gymnasium and
// dm_control read too, takes the choice.
#pragma once

#include <memory>

namespace weft {

class GlContext {
 public:
  // Throws Error(kUnavailable) that says what was tried and which Debian packages would do.
  static std::unique_ptr<GlContext> Make();
  virtual ~GlContext() = default;

  // Ties the context to the calling thread, and frees it for another one. A context is tied to one
  // thread at a time.
  virtual void Bind() = 0;
  virtual void Release() = 0;
};

}  // namespace weft
