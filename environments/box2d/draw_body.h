// Draws bodies of a world on a Canvas whose coordinates are the world's.
#pragma once

#include <array>
#include <box2d/box2d.h>
#include <cstddef>
#include <span>

#include "environments/drawing/canvas.h"

namespace weft {

// The polygons of a body, with outlines as wide as a pixel of the originals' pictures.
inline void DrawBody(const b2Body& body, const Colour& fill, const Colour& outline,
                     double line_width, Canvas& canvas) {
  for (const b2Fixture* fixture = body.GetFixtureList(); fixture != nullptr;
       fixture = fixture->GetNext()) {
    if (fixture->GetType() != b2Shape::e_polygon) continue;
    const auto& shape = *static_cast<const b2PolygonShape*>(fixture->GetShape());
    std::array<Point, b2_maxPolygonVertices + 1> corners;
    const auto count = static_cast<size_t>(shape.m_count);
    for (size_t i = 0; i < count; ++i) {
      const b2Vec2 place = body.GetWorldPoint(shape.m_vertices[i]);
      corners[i] = {place.x, place.y};
    }
    corners[count] = corners[0];
    canvas.Polygon(std::span(corners).first(count), fill);
    canvas.Polyline(std::span(corners).first(count + 1), line_width, outline);
  }
}

}  // namespace weft
