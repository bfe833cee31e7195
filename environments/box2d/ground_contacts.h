// What a robot that may touch the ground with its feet alone knows of its contacts.
#pragma once

#include <array>
#include <box2d/box2d.h>
#include <cstddef>
#include <cstdint>

namespace weft {

// As Gymnasium's ContactDetector: a foot that loses one of several contacts counts as lifted.
class GroundContacts final : public b2ContactListener {
 public:
  static constexpr size_t kFeet = 2;

  // Says which bodies are the robot's; those that are named nothing do not count.
  static void NameHull(b2Body& body) { body.GetUserData().pointer = kHull; }
  static void NameFoot(b2Body& body, size_t foot) {
    body.GetUserData().pointer = kFirstFoot + foot;
  }

  void Clear() { *this = GroundContacts(); }
  bool crashed() const { return crashed_; }  // the hull has touched the ground
  bool down(size_t foot) const { return down_[foot]; }

  void BeginContact(b2Contact* contact) override { Change(*contact, true); }
  void EndContact(b2Contact* contact) override { Change(*contact, false); }

 private:
  static constexpr uintptr_t kHull = 1, kFirstFoot = 2;

  void Change(b2Contact& contact, bool touching) {
    for (b2Fixture* fixture : {contact.GetFixtureA(), contact.GetFixtureB()}) {
      const uintptr_t name = fixture->GetBody()->GetUserData().pointer;
      if (name == kHull) crashed_ |= touching;
      if (name >= kFirstFoot) down_[name - kFirstFoot] = touching;
    }
  }

  bool crashed_ = false;
  std::array<bool, kFeet> down_{};
};

}  // namespace weft
