// The picture that both mountain cars share.
#pragma once

namespace weft {

class Canvas;

// A car at `position` in the valley from `least` to `most`, and a flag at the goal.
void DrawMountain(double position, double least, double most, double goal, Canvas& canvas);

}  // namespace weft
