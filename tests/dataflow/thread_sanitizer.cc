// Debian's libzmq is not built for the thread sanitizer, which therefore sees the memory it passes
// between its threads and not how they agree on it. Read by the sanitizer's runtime; unused in
// other builds.
extern "C" const char*
__tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): the runtime's name
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libzmq.so\n"
         "race:weft::ZmqSocket::*\n";
}
