// Waiting for Ctrl-C or SIGTERM, for services.
#pragma once

namespace weft {

// From here on the first signal wakes AwaitSignal; a second one ends the program at once. Throws
// Error(kIo).
void CatchSignals();
void AwaitSignal();

}  // namespace weft
