#include "environments/mujoco/gl_context.h"

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace weft {
namespace {

// A shared library, or why it is not to be had.
class Library {
 public:
  explicit Library(const char* name) : name_(name), handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) problem_ = dlerror();
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <class Function>
  void Find(const char* symbol, Function*& function) {
    if (handle_ == nullptr) return;
    function = reinterpret_cast<Function*>(dlsym(handle_, symbol));
    if (function == nullptr) Fail(std::string("has no ") + symbol);
  }
  void Fail(const std::string& problem) {
    if (problem_.empty()) problem_ = name_ + " " + problem;
  }
  const std::string& problem() const { return problem_; }
  // MuJoCo looks for OpenGL's functions in the global symbols of the process: those of the library
  // that works, and of no other.
  void Publish() const { dlopen(name_.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD); }

 private:
  const std::string name_;
  void* const handle_;
  std::string problem_;
};

// ---- EGL 1.5, as its specification (Khronos, 2014) declares it

class Egl {
 public:
  Egl() { Open(); }

  const std::string& problem() const { return library_.problem(); }
  void* Create() {
    bind_api_(kOpenGl);
    return create_context_(display_, nullptr, nullptr, nullptr);
  }
  void Destroy(void* context) { destroy_context_(display_, context); }
  bool MakeCurrent(void* context) {
    bind_api_(kOpenGl);  // of the calling thread
    return make_current_(display_, nullptr, nullptr, context) != 0;
  }

 private:
  static constexpr unsigned kSurfacelessPlatform = 0x31DD;  // EGL_MESA_platform_surfaceless
  static constexpr unsigned kOpenGl = 0x30A2;               // EGL_OPENGL_API

  void Open() {
    library_.Find("eglGetPlatformDisplay", get_platform_display_);
    library_.Find("eglInitialize", initialise_);
    library_.Find("eglBindAPI", bind_api_);
    library_.Find("eglCreateContext", create_context_);
    library_.Find("eglMakeCurrent", make_current_);
    library_.Find("eglDestroyContext", destroy_context_);
    library_.Find("eglGetDisplay", get_display_);
    if (!library_.problem().empty()) return;
    display_ = get_platform_display_(kSurfacelessPlatform, nullptr, nullptr);
    if (display_ == nullptr || initialise_(display_, nullptr, nullptr) == 0) {
      display_ = get_display_(nullptr);
      if (display_ == nullptr || initialise_(display_, nullptr, nullptr) == 0)
        return library_.Fail("finds no display");
    }
    void* const context = Create();
    if (context == nullptr) return library_.Fail("makes no OpenGL context");
    Destroy(context);
    library_.Publish();
  }

  Library library_{"libEGL.so.1"};
  void* (*get_platform_display_)(unsigned, void*, const intptr_t*) = nullptr;
  void* (*get_display_)(void*) = nullptr;
  unsigned (*initialise_)(void*, int32_t*, int32_t*) = nullptr;
  unsigned (*bind_api_)(unsigned) = nullptr;
  void* (*create_context_)(void*, void*, void*, const int32_t*) = nullptr;
  unsigned (*make_current_)(void*, void*, void*, void*) = nullptr;
  unsigned (*destroy_context_)(void*, void*) = nullptr;
  void* display_ = nullptr;
};

class EglContext final : public GlContext {
 public:
  explicit EglContext(Egl& egl) : egl_(egl), context_(egl.Create()) {
    if (context_ == nullptr)
      throw Error(ErrorCode::kUnavailable, "EGL makes no further OpenGL context");
  }
  ~EglContext() override { egl_.Destroy(context_); }
  void Bind() override {
    if (!egl_.MakeCurrent(context_))
      throw Error(ErrorCode::kUnavailable, "EGL does not bind an OpenGL context to a thread");
  }
  void Release() override { egl_.MakeCurrent(nullptr); }

 private:
  Egl& egl_;
  void* const context_;
};

// ---- OSMesa

class OsMesa {
 public:
  OsMesa() { Open(); }

  const std::string& problem() const { return library_.problem(); }
  void* Create() {
    constexpr int kDepthBits = 24, kStencilBits = 8;
    return create_context_(kRgba, kDepthBits, kStencilBits, 0, nullptr);
  }
  void Destroy(void* context) { destroy_context_(context); }
  bool MakeCurrent(void* context, void* pixels, int side) {
    return make_current_(context, pixels, kUnsignedByte, side, side) != 0;
  }

 private:
  static constexpr unsigned kRgba = 0x1908, kUnsignedByte = 0x1401;  // GL_RGBA, GL_UNSIGNED_BYTE

  void Open() {
    library_.Find("OSMesaCreateContextExt", create_context_);
    library_.Find("OSMesaMakeCurrent", make_current_);
    library_.Find("OSMesaDestroyContext", destroy_context_);
    if (!library_.problem().empty()) return;
    void* const context = Create();
    if (context == nullptr) return library_.Fail("makes no OpenGL context");
    destroy_context_(context);
    library_.Publish();
  }

  Library library_{"libOSMesa.so.8"};
  void* (*create_context_)(unsigned, int, int, int, void*) = nullptr;
  unsigned char (*make_current_)(void*, void*, unsigned, int, int) = nullptr;
  void (*destroy_context_)(void*) = nullptr;
};

class OsMesaContext final : public GlContext {
 public:
  explicit OsMesaContext(OsMesa& mesa)
      : mesa_(mesa), context_(mesa.Create()), pixels_(4 * kSide * kSide) {
    if (context_ == nullptr)
      throw Error(ErrorCode::kUnavailable, "OSMesa makes no further OpenGL context");
  }
  ~OsMesaContext() override { mesa_.Destroy(context_); }
  void Bind() override {
    if (!mesa_.MakeCurrent(context_, pixels_.data(), kSide))
      throw Error(ErrorCode::kUnavailable, "OSMesa does not bind an OpenGL context to a thread");
  }
  void Release() override { mesa_.MakeCurrent(nullptr, nullptr, 0); }

 private:
  static constexpr int kSide = 16;  // of a frame that OSMesa wants and MuJoCo does not draw on

  OsMesa& mesa_;
  void* const context_;
  std::vector<uint8_t> pixels_;
};

// Either library, loaded when it is first asked for and kept.
Egl& LoadEgl() {
  static auto& egl = *new Egl;
  return egl;
}
OsMesa& LoadOsMesa() {
  static auto& mesa = *new OsMesa;
  return mesa;
}

}  // namespace

std::unique_ptr<GlContext> GlContext::Make() {
  const char* variable = std::getenv("MUJOCO_GL");
  const std::string_view choice = variable == nullptr ? "" : variable;
  if (!choice.empty() && choice != "egl" && choice != "osmesa") {
    throw Error(ErrorCode::kConfig, "MUJOCO_GL=" + std::string(choice) +
                                        ": weft renders without a window, by egl or osmesa; "
                                        "without the variable it takes what is there");
  }
  std::string tried;
  if (choice != "osmesa") {
    if (LoadEgl().problem().empty()) return std::make_unique<EglContext>(LoadEgl());
    tried = LoadEgl().problem();
  }
  if (choice != "egl") {
    if (LoadOsMesa().problem().empty()) return std::make_unique<OsMesaContext>(LoadOsMesa());
    tried += (tried.empty() ? "" : "; ") + LoadOsMesa().problem();
  }
  throw Error(ErrorCode::kUnavailable,
              "pictures of MuJoCo's environments need OpenGL (" + tried +
                  "): install the Debian packages libegl1 and libgl1-mesa-dri, or libosmesa6");
}

}  // namespace weft
