// Read by the address sanitizer's runtime; unused in other builds. Memory limits are tested, and
// malloc returns null at one, as it does elsewhere. By default the sanitizer ends the process with
// a report, which needs memory, too, is refused it, and then waits for itself forever.
extern "C" const char*
__asan_default_options();  // NOLINT(bugprone-reserved-identifier): the runtime's name
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
