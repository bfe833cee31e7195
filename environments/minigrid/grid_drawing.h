// How cells of the MiniGrid family look, in pictures and as text, after minigrid 3.2.
#pragma once

#include <string>

#include "environments/drawing/canvas.h"
#include "environments/minigrid/grid_world.h"

namespace weft {

// The lower left corner of a cell on the canvas; a side is 1.
void DrawGridCell(const GridCell& cell, Point corner, Canvas& canvas);
// direction: 0 right, 1 down, 2 left, 3 up.
void DrawGridAgent(int64_t direction, Point corner, Canvas& canvas);

// Two letters: what it is, and its colour.
std::string GridCellText(const GridCell& cell);
std::string GridAgentText(int64_t direction);

}  // namespace weft
