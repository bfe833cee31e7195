// How the originals step their worlds, and what makes bodies of their lists of corners.
#pragma once

#include <array>
#include <box2d/box2d.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace weft {

inline constexpr double kStepsPerSecond = 50;
inline constexpr uint16_t kGroundCategory = 0x0001;  // Box2D's default

inline b2Vec2 Vector(double x, double y) {
  return {static_cast<float>(x), static_cast<float>(y)};
}

inline void Advance(b2World& world) {
  constexpr int kVelocityIterations = 6 * 30, kPositionIterations = 2 * 30;
  world.Step(static_cast<float>(1 / kStepsPerSecond), kVelocityIterations, kPositionIterations);
}

// Corners (x, y) in units of `unit` m, at most b2_maxPolygonVertices.
using Corner = std::pair<double, double>;
inline b2PolygonShape PolygonOf(std::span<const Corner> corners, double unit) {
  std::array<b2Vec2, b2_maxPolygonVertices> points;
  for (size_t i = 0; i < corners.size(); ++i)
    points[i] = Vector(corners[i].first * unit, corners[i].second * unit);
  b2PolygonShape shape;
  shape.Set(points.data(), static_cast<int32>(corners.size()));
  return shape;
}

// A part of a robot, which touches the ground alone.
struct Part {
  b2Vec2 position;
  double angle = 0;  // rad
  float density = 1, friction = 0.2f;
  uint16_t category = 0x0020;
};
inline b2Body* MakePart(b2World& world, const Part& part, const b2PolygonShape& shape) {
  b2BodyDef definition;
  definition.type = b2_dynamicBody;
  definition.position = part.position;
  definition.angle = static_cast<float>(part.angle);
  b2Body* body = world.CreateBody(&definition);
  b2FixtureDef fixture;
  fixture.shape = &shape;
  fixture.density = part.density;
  fixture.friction = part.friction;
  fixture.filter.categoryBits = part.category;
  fixture.filter.maskBits = kGroundCategory;
  body->CreateFixture(&fixture);
  return body;
}

}  // namespace weft
