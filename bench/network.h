// Speed of one small network, 17-64-64-6 with tanh, through the modules and calls that actors and
// learners use.
#pragma once

namespace weft {

// Seconds of one update on 64 rows: forward on the tape, squared error, gradient by plan, Adam. One
// thread.
double MeasureUpdate();
// Seconds of the forward pass of one row. One thread.
double MeasureForward();

}  // namespace weft
