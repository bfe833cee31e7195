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

namespace weft {

template <class E, class... Defaults>
EnvironmentEntry MakeEnvironmentEntry(std::string summary, Defaults... defaults) {
  using Arguments = typename E::Arguments;
  const auto cast = [](const Config& config) -> const Arguments& {
    const auto* arguments = dynamic_cast<const Arguments*>(&config);
    WEFT_CHECK(arguments != nullptr) << "these are the arguments of another environment";
    return *arguments;
  };
  return {.summary = std::move(summary),
          .make_arguments = [=] { return std::make_unique<Arguments>(defaults...); },
          .copy_arguments =
              [=](const Config& config) { return std::make_unique<Arguments>(cast(config)); },
          .make = [=](const Config& config) { return std::make_unique<E>(cast(config)); },
          .make_batch =
              [=](const Config& config, const BatchOptions& options) {
                return std::make_unique<BatchOf<E>>(cast(config), options);
              }};
}

#define WEFT_REGISTER_JOIN_(prefix, line) prefix##line
#define WEFT_REGISTER_VARIABLE_(line) WEFT_REGISTER_JOIN_(weft_registered_, line)
#define WEFT_REGISTER_ENVIRONMENT(ClassName, id, summary, ...)                                \
  [[maybe_unused]] const bool WEFT_REGISTER_VARIABLE_(__LINE__) = ::weft::Environments().Add( \
      id, ::weft::MakeEnvironmentEntry<ClassName>(summary __VA_OPT__(, ) __VA_ARGS__));

}  // namespace weft
