// Registration of an environment class, in the file that defines it:
//   WEFT_REGISTER_ENVIRONMENT(CartPole, "CartPole-v1", "keep a pole upright on a cart: 4 numbers, 2
//   actions")
// Further arguments go to the constructor of ClassName::Arguments (a table of defaults, for a class
// that serves several ids).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "environments/batch_of.h"
#include "environments/multi_agent_batch.h"

namespace weft {

template <class E>
const typename E::Arguments& ArgumentsOf(const Config& config) {
  const auto* arguments = dynamic_cast<const typename E::Arguments*>(&config);
  WEFT_CHECK(arguments != nullptr) << "these are the arguments of another environment";
  return *arguments;
}

// What entries of both kinds share: all but how instances and batches are made.
template <class E, class... Defaults>
EnvironmentEntry MakeArgumentsEntry(std::string summary, Defaults... defaults) {
  using Arguments = typename E::Arguments;
  EnvironmentEntry entry;
  entry.summary = std::move(summary);
  entry.make_arguments = [=] { return std::make_unique<Arguments>(defaults...); };
  entry.copy_arguments = [](const Config& config) {
    return std::make_unique<Arguments>(ArgumentsOf<E>(config));
  };
  return entry;
}

template <class E, class... Defaults>
EnvironmentEntry MakeEnvironmentEntry(std::string summary, Defaults... defaults) {
  EnvironmentEntry entry = MakeArgumentsEntry<E>(std::move(summary), defaults...);
  entry.make = [](const Config& config) { return std::make_unique<E>(ArgumentsOf<E>(config)); };
  entry.make_batch = [](const Config& config, const BatchOptions& options) {
    return std::make_unique<BatchOf<E>>(ArgumentsOf<E>(config), options);
  };
  return entry;
}

// E is a MultiAgentEnvironment.
template <class E, class... Defaults>
EnvironmentEntry MakeMultiAgentEntry(std::string summary, Defaults... defaults) {
  EnvironmentEntry entry = MakeArgumentsEntry<E>(std::move(summary), defaults...);
  entry.make_multi_agent = [](const Config& config) {
    return std::make_unique<E>(ArgumentsOf<E>(config));
  };
  entry.make_batch = [](const Config& config, const BatchOptions& options) {
    const typename E::Arguments& arguments = ArgumentsOf<E>(config);
    return std::make_unique<MultiAgentBatch>([&] { return std::make_unique<E>(arguments); },
                                             options, E::kStepNanoseconds);
  };
  return entry;
}

#define WEFT_REGISTER_JOIN_(prefix, line) prefix##line
#define WEFT_REGISTER_VARIABLE_(line) WEFT_REGISTER_JOIN_(weft_registered_, line)
#define WEFT_REGISTER_MULTI_AGENT_ENVIRONMENT(ClassName, id, summary, ...)                    \
  [[maybe_unused]] const bool WEFT_REGISTER_VARIABLE_(__LINE__) = ::weft::Environments().Add( \
      id, ::weft::MakeMultiAgentEntry<ClassName>(summary __VA_OPT__(, ) __VA_ARGS__));
#define WEFT_REGISTER_ENVIRONMENT(ClassName, id, summary, ...)                                \
  [[maybe_unused]] const bool WEFT_REGISTER_VARIABLE_(__LINE__) = ::weft::Environments().Add( \
      id, ::weft::MakeEnvironmentEntry<ClassName>(summary __VA_OPT__(, ) __VA_ARGS__));

}  // namespace weft
