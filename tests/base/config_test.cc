#include "base/config.h"

#include <cmath>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "base/check.h"
#include "base/file.h"
#include "base/random.h"
#include "base/registry.h"
#include "tests/base/temporary_folder.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Wrapper : Config {
  int64_t count = 4;
  double scale = 1;
  void Fields(FieldVisitor& v) override {
    v.Field("count", count, "frames", Range::AtLeast(1));
    v.Field("scale", scale, "factor");
  }
  void Check() const override {
    if (scale == 13) throw ConfigProblem("scale", "13 is no scale");
  }
};

struct Arguments : Config {
  explicit Arguments(std::string id) : key(id == "cart" ? "gravity" : "mass") {}
  std::string key;
  double value = 9.8;
  void Fields(FieldVisitor& v) override { v.Field(key.c_str(), value, "physics"); }
};

struct Environment : Config {
  std::string id = "cart";
  int64_t rows = 8;
  std::vector<std::pair<std::string, std::unique_ptr<Wrapper>>> wrappers;
  std::unique_ptr<Arguments> arguments;
  std::string arguments_id;

  void Fields(FieldVisitor& v) override {
    v.Field("id", id, "which environment");
    static const Registry<int> kKnown = [] {
      Registry<int> known("environment");
      known.Add("cart", 1);
      known.Add("pole", 2);
      return known;
    }();
    kKnown.At(id);
    v.Field("rows", rows, "copies", Range::Between(1, 100000));
    if (arguments_id != id) {
      arguments = std::make_unique<Arguments>(id);
      arguments_id = id;
    }
    v.Section("arguments", *arguments, "of the environment");
    v.Sections("wrappers",
               {.clear = [this] { wrappers.clear(); },
                .make = [this](const std::string& name) -> Config& {
                  if (name != "frame_stack" && name != "clip") {
                    throw Error(ErrorCode::kConfig, "there is no wrapper \"" + name + "\"");
                  }
                  return *wrappers.emplace_back(name, std::make_unique<Wrapper>()).second;
                },
                .current =
                    [this] {
                      std::vector<std::pair<std::string, Config*>> current;
                      for (auto& [name, wrapper] : wrappers)
                        current.emplace_back(name, wrapper.get());
                      return current;
                    }},
               "applied in this order");
  }
};

struct RunConfig : Config {
  bool learn_std = false;
  int64_t steps = 100;
  int64_t minibatch = 50;
  uint64_t seed = 1;
  double learning_rate = 3e-4;
  double limit = std::numeric_limits<double>::infinity();
  std::string name = "run";
  std::string activation = "tanh";
  std::vector<int64_t> hidden = {64, 64};
  std::vector<double> betas = {0.9, 0.999};
  std::vector<std::string> tags;
  Environment environment;

  void Fields(FieldVisitor& v) override {
    v.Field("learn_std", learn_std, "whether the deviation is learned");
    v.Field("steps", steps, "environment steps", Range::AtLeast(0));
    v.Field("minibatch", minibatch, "rows of an update");
    v.Field("seed", seed, "of all randomness");
    v.Field("learning_rate", learning_rate, "Adam step size", Range::Positive());
    v.Field("limit", limit, "of the gradient norm", Range::Positive().OrInfinite());
    v.Field("name", name, "of the run");
    v.Choice("activation", activation, {"tanh", "relu"}, "between layers");
    v.Field("hidden", hidden, "widths", Range::AtLeast(1));
    v.Field("betas", betas, "of Adam", Range::Between(0, 1));
    v.Field("tags", tags, "any words");
    v.Section("environment", environment, "what is acted in");
  }
  void Check() const override {
    if (minibatch > steps) throw ConfigProblem("minibatch", "is larger than steps");
    if (environment.rows > 50000) throw ConfigProblem("environment.rows", "too many");
  }
};

RunConfig Parsed(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  ConfigSource source = ConfigSource::Text(yaml, "run.yaml");
  for (const std::string& assignment : overrides) source.Override(assignment);
  RunConfig run;
  source.Parse(run);
  return run;
}

std::string Refused(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  try {
    Parsed(yaml, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.message();
  }
  ADD_FAILURE() << "accepted: " << yaml;
  return "";
}

TEST(Config, FileSaysOnlyWhatDiffersFromTheDefaults) {
  const RunConfig run = Parsed(
      "learn_std: true\nsteps: 1e6\nname: 1e3\nhidden: [32]\nbetas: []\ntags: [a, \"b c\"]\n"
      "environment:\n  id: pole\n  arguments: {mass: 2}\n");
  EXPECT_TRUE(run.learn_std);
  EXPECT_EQ(run.steps, 1000000);
  EXPECT_EQ(run.name, "1e3");
  EXPECT_THAT(run.hidden, ElementsAre(32));
  EXPECT_THAT(run.betas, ElementsAre());
  EXPECT_THAT(run.tags, ElementsAre("a", "b c"));
  EXPECT_EQ(run.environment.arguments->value, 2);
  EXPECT_EQ(run.learning_rate, 3e-4);
  EXPECT_EQ(run.activation, "tanh");
  EXPECT_EQ(Parsed("").steps, 100);
  EXPECT_EQ(Parsed("environment:\n").environment.rows, 8);
}

TEST(Config, ErrorsNamePlaceKeyReasonAndTheNearestKey) {
  EXPECT_EQ(Refused("seed: 1\nlerning_rate: 1\n"),
            "run.yaml:2: lerning_rate: there is no such key; did you mean \"learning_rate\"?");
  EXPECT_EQ(Refused("environment:\n  id: cart\n  rws: 3\n"),
            "run.yaml:3: environment.rws: there is no such key; did you mean \"rows\"?");
  EXPECT_EQ(Refused("environment:\n  id: pole\n  arguments: {gravity: 1}\n"),
            "run.yaml:3: environment.arguments.gravity: there is no such key");
  EXPECT_EQ(Refused("learning_rate: -1\n"), "run.yaml:1: learning_rate: must be > 0, not -1");
  EXPECT_EQ(Refused("environment: {rows: 0}\n"),
            "run.yaml:1: environment.rows: must be 1..100000, not 0");
  EXPECT_EQ(Refused("betas: [0.9, 1.5]\n"), "run.yaml:1: betas.1: must be 0..1, not 1.5");
  EXPECT_EQ(Refused("activation: tanhh\n"),
            "run.yaml:1: activation: must be one of tanh, relu, not \"tanhh\"; did you mean "
            "\"tanh\"?");
  EXPECT_EQ(Refused("steps: many\n"), "run.yaml:1: steps: must be a whole number, not \"many\"");
}

TEST(Config, WrongKindsOfValuesAreRefused) {
  EXPECT_THAT(Refused("steps: [1]\n"), HasSubstr("steps: must be a whole number, not a list"));
  EXPECT_THAT(Refused("steps: {a: 1}\n"), HasSubstr("not a section"));
  EXPECT_THAT(Refused("steps:\n"), HasSubstr("not nothing"));
  EXPECT_THAT(Refused("steps: \"1\"\n"), HasSubstr("leave out the quotes"));
  EXPECT_THAT(Refused("learn_std: 'true'\n"), HasSubstr("leave out the quotes"));
  EXPECT_THAT(Refused("name: [a]\n"), HasSubstr("must be text, not a list"));
  EXPECT_THAT(Refused("name:\n"), HasSubstr("must be text, not nothing"));
  EXPECT_THAT(Refused("hidden: 64\n"), HasSubstr("must be a list such as [64]"));
  EXPECT_THAT(Refused("hidden: [64, [1]]\n"), HasSubstr("hidden.1: must be a whole number"));
  EXPECT_THAT(Refused("environment: cart\n"), HasSubstr("must be a section of keys"));
  EXPECT_THAT(Refused("environment: [cart]\n"), HasSubstr("must be a section of keys"));
  EXPECT_THAT(Refused("- a\n"), StartsWith("run.yaml:1: a config is"));
  EXPECT_THAT(Refused("just text\n"), StartsWith("run.yaml:1: a config is"));
}

// Case C114 of the reference: each of its lines gives this number or an error with line and key.
TEST(Config, EverySpellingOfANumberMeansWhatItSays) {
  EXPECT_EQ(Parsed("learning_rate: 1e-4").learning_rate, 0.0001);
  EXPECT_EQ(Parsed("learning_rate: 1E-8").learning_rate, 1e-8);
  EXPECT_EQ(Parsed("learning_rate: .2").learning_rate, 0.2);
  EXPECT_EQ(Parsed("learning_rate: 1.e-3").learning_rate, 0.001);
  EXPECT_EQ(Parsed("steps: 1e6").steps, 1000000);
  EXPECT_EQ(Parsed("steps: 1_000_000").steps, 1000000);
  EXPECT_THAT(Refused("steps: 0256"), StartsWith("run.yaml:1: steps: \"0256\" starts with a zero"));
  EXPECT_EQ(Parsed("steps: 0x40").steps, 64);
  EXPECT_EQ(Parsed("seed: 12345678901").seed, 12345678901u);
  EXPECT_EQ(Parsed("steps: 2048.0").steps, 2048);
  EXPECT_THAT(Refused("steps: 2048.5"), StartsWith("run.yaml:1: steps: "));
  EXPECT_EQ(Refused("learning_rate: .inf"), "run.yaml:1: learning_rate: must be finite, not .inf");
  EXPECT_THAT(Refused("learning_rate: .nan"), HasSubstr("must be a number"));
  EXPECT_EQ(Parsed("limit: .inf").limit, std::numeric_limits<double>::infinity());
  EXPECT_THAT(Refused("learn_std: on"), HasSubstr("write true for \"on\""));
  EXPECT_EQ(Parsed("name: 1e3").name, "1e3");
  EXPECT_EQ(Parsed("name: no").name, "no");
  EXPECT_THAT(Refused("steps: 99999999999999999999999999"), HasSubstr("64 bits"));
}

TEST(Config, OverridesSetAnyKeyAndTheLastOneWins) {
  const RunConfig run =
      Parsed("steps: 500\nenvironment:\n  wrappers:\n    - frame_stack\n    - {name: clip}\n",
             {"steps=700", "environment.id=pole", "environment.arguments.mass=3", "hidden=[8, 16]",
              "hidden.1=32", "name=", "steps=900", "tags=[x]",
              "environment.wrappers.frame_stack.count=2", "environment.wrappers.1.scale=0.5"});
  EXPECT_EQ(run.steps, 900);
  EXPECT_EQ(run.environment.id, "pole");
  EXPECT_EQ(run.environment.arguments->value, 3);
  EXPECT_THAT(run.hidden, ElementsAre(8, 32));
  EXPECT_EQ(run.name, "");
  EXPECT_THAT(run.tags, ElementsAre("x"));
  ASSERT_EQ(run.environment.wrappers.size(), 2u);
  EXPECT_EQ(run.environment.wrappers[0].first, "frame_stack");
  EXPECT_EQ(run.environment.wrappers[0].second->count, 2);
  EXPECT_EQ(run.environment.wrappers[1].second->scale, 0.5);
}

TEST(Config, MistakesInOverridesNameTheCommandLine) {
  EXPECT_EQ(Refused("steps: 100\n", {"learning_rate=0"}),
            "command line: learning_rate: must be > 0, not 0");
  EXPECT_EQ(Refused("", {"sed=3"}),
            "command line: sed: there is no such key; did you mean \"seed\"?");
  EXPECT_EQ(Refused("", {"environment.id=cat"}),
            "command line: environment.id: there is no environment \"cat\"; did you mean "
            "\"cart\"?");
  EXPECT_THAT(Refused("", {"steps"}), HasSubstr("written key=value"));
  EXPECT_THAT(Refused("", {"=3"}), HasSubstr("is no key"));
  EXPECT_THAT(Refused("", {"a..b=3"}), HasSubstr("is no key"));
  EXPECT_THAT(Refused("", {"name=[a"}), StartsWith("command line: name:1: "));
  EXPECT_THAT(Refused("hidden: [1]\n", {"hidden.3=4"}), HasSubstr("has 1 elements"));
  EXPECT_THAT(Refused("", {"seed.x=4"}), HasSubstr("seed: must be a whole number"));
}

// A list whose entries say what they are by a key.
struct Term : Config {
  explicit Term(std::string term_kind) : kind(std::move(term_kind)) {}
  void Fields(FieldVisitor& v) override {
    v.Names(kind.c_str(), names, "what is measured");
    v.Field("weight", weight, "factor");
  }
  std::string kind;
  std::vector<std::string> names;
  double weight = 1;
};
struct Terms : Config {
  void Fields(FieldVisitor& v) override {
    v.Sections("terms",
               {.clear = [this] { terms.clear(); },
                .make = [this](const std::string& kind) -> Config& {
                  return *terms.emplace_back(std::make_unique<Term>(kind));
                },
                .current =
                    [this] {
                      std::vector<std::pair<std::string, Config*>> current;
                      for (auto& term : terms) current.emplace_back(term->kind, term.get());
                      return current;
                    },
                .kinds = {"angle", "speed"}},
               "what counts");
  }
  std::vector<std::unique_ptr<Term>> terms;
};

TEST(Config, ListsOfSectionsCanBeNamedByAKey) {
  Terms terms;
  const auto parse = [&](const char* yaml) {
    ConfigSource::Text(yaml, "run.yaml").Parse(terms);
    return ToYaml(terms);
  };
  const std::string written =
      "terms:\n  - angle: knee\n    weight: 1\n  - speed: [hip, knee]\n    weight: -2\n";
  EXPECT_EQ(parse("terms:\n- angle: knee\n- {weight: -2, speed: [hip, knee]}\n"), written);
  // What is there already is replaced, so what was written reads back to itself.
  EXPECT_EQ(parse(written.c_str()), written);
  EXPECT_EQ(parse("{}"), written);
  EXPECT_EQ(parse("terms: []"), "terms: []\n");
  const auto refusal = [&](const char* yaml) {
    try {
      parse(yaml);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("nothing");
  };
  EXPECT_EQ(refusal("terms:\n- angel: knee\n"),
            "run.yaml:2: terms.0: has none of the keys that say what it is: angle, speed; did you "
            "mean \"angle\"?");
  EXPECT_EQ(refusal("terms:\n- {angle: knee, speed: hip}\n"),
            "run.yaml:2: terms.0: is both angle and speed");
  EXPECT_EQ(refusal("terms:\n- {angle: knee, wight: 3}\n"),
            "run.yaml:2: terms.0.wight: there is no such key; did you mean \"weight\"?");
  EXPECT_EQ(refusal("terms: {angle: knee}\n"),
            "run.yaml:1: terms: must be a list of sections (\"- angle: ...\"), not a section");
}

TEST(Config, ListsOfSectionsTakeNamesAndMaps) {
  const RunConfig run = Parsed(
      "environment:\n  wrappers:\n    - clip\n    - {name: frame_stack, count: 2}\n    - name: "
      "clip\n"
      "      scale: 3\n");
  ASSERT_EQ(run.environment.wrappers.size(), 3u);
  EXPECT_EQ(run.environment.wrappers[0].second->count, 4);
  EXPECT_EQ(run.environment.wrappers[1].second->count, 2);
  EXPECT_EQ(run.environment.wrappers[2].second->scale, 3);
  EXPECT_EQ(Refused("environment:\n  wrappers:\n    - clap\n"),
            "run.yaml:3: environment.wrappers: there is no wrapper \"clap\"");
  EXPECT_EQ(Refused("environment:\n  wrappers:\n    - clip\n    - {count: 3}\n"),
            "run.yaml:4: environment.wrappers.1: has no name (\"- name: ...\")");
  EXPECT_EQ(Refused("environment:\n  wrappers:\n    - {name: clip, cont: 3}\n"),
            "run.yaml:3: environment.wrappers.0.cont: there is no such key; did you mean "
            "\"count\"?");
  EXPECT_THAT(Refused("environment: {wrappers: clip}\n"), HasSubstr("must be a list of names"));
  EXPECT_THAT(Refused("environment: {wrappers: [[clip]]}\n"), HasSubstr("has no name"));
}

TEST(Config, ProblemsOfCheckAreLocated) {
  EXPECT_EQ(Refused("steps: 40\nminibatch: 41\n"), "run.yaml:2: minibatch: is larger than steps");
  EXPECT_EQ(Refused("steps: 40\n"), "run.yaml (default): minibatch: is larger than steps");
  EXPECT_EQ(Refused("steps: 40\n", {"minibatch=41"}),
            "command line: minibatch: is larger than steps");
  EXPECT_EQ(Refused("environment:\n  rows: 60000\n"), "run.yaml:2: environment.rows: too many");
  EXPECT_EQ(Refused("environment:\n  wrappers:\n    - {name: clip, scale: 13}\n"),
            "run.yaml:3: environment.wrappers.0.scale: 13 is no scale");
  const ConfigSource source = ConfigSource::Text("a: 1\nb: {c: 2}\n", "late.yaml");
  EXPECT_STREQ(source.Locate(ConfigProblem("b.c", "does not fit")).what(),
               "late.yaml:2: b.c: does not fit");
}

TEST(Config, SourceAnswersBeforeParsing) {
  ConfigSource source = ConfigSource::Text("algorithm: ppo\nenvironment: {id: cart}\n", "run.yaml");
  EXPECT_EQ(source.Scalar("algorithm"), "ppo");
  EXPECT_EQ(source.Scalar("environment.id"), "cart");
  EXPECT_EQ(source.Scalar("environment"), "");
  EXPECT_EQ(source.Scalar("seed"), "");
  EXPECT_TRUE(source.Has("environment"));
  EXPECT_FALSE(source.Has("environment.rows"));
  source.Override("algorithm=dqn");
  EXPECT_EQ(source.Scalar("algorithm"), "dqn");
}

TEST(Config, AMissingFileIsAConfigErrorWithTheNearestName) {
  const TemporaryFolder temporary;
  const std::string& folder = temporary.path();
  WriteFileAtomic(folder + "/cartpole.yaml", "steps: 5\n");
  EXPECT_EQ(ConfigSource::File(folder + "/cartpole.yaml").Scalar("steps"), "5");
  try {
    ConfigSource::File(folder + "/cartpol.yaml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.message(), HasSubstr("did you mean \"cartpole.yaml\"?"));
  }
}

// Values a config can hold, among them those that YAML likes to read as something else.
std::string RandomText(Rng& rng) {
  static const std::vector<std::string> kTraps = {
      "",     "no",        "1e3",          "~",      "null", "a: b", "- x",  "#c",  "'",
      "\"",   "\\",        "a\nb",         "\t x",   "[1]",  "{a}",  "&x",   "*x",  "!!int",
      "0x10", "\x01",      "\xE2\x82\xAC", " ",      "a ",   "<<",   "true", "---", "%a",
      "@b",   "run/a-1.2", "a,b",          "x\r\ny", "\x7F", "?",    ": ",   "| y", ">"};
  return kTraps[rng.Below(kTraps.size())] + (rng.Below(3) == 0 ? kTraps[rng.Below(30)] : "");
}

TEST(Config, YamlOfAnyConfigReadsBackToTheSame) {
  Rng rng(3, Purpose::kTest);
  for (int trial = 0; trial < 500; ++trial) {
    RunConfig run;
    run.learn_std = rng.Below(2) == 1;
    run.steps = static_cast<int64_t>(rng.NextU64() >> 1);
    run.minibatch = -static_cast<int64_t>(rng.NextU64() >> rng.Below(63));
    if (run.minibatch > run.steps) run.minibatch = run.steps;
    run.seed = rng.NextU64();
    run.learning_rate = std::exp(60 * rng.Normal());
    run.limit = rng.Below(2) == 1 ? run.limit : rng.Uniform() + 1e-300;
    run.name = RandomText(rng);
    run.activation = "relu";
    run.hidden.assign(rng.Below(4), 1 + static_cast<int64_t>(rng.Below(1000)));
    run.betas.assign(rng.Below(4), rng.Uniform());
    for (uint64_t i = rng.Below(4); i > 0; --i) run.tags.push_back(RandomText(rng));
    run.environment.id = rng.Below(2) == 1 ? "cart" : "pole";
    run.environment.arguments = std::make_unique<Arguments>(run.environment.id);
    run.environment.arguments_id = run.environment.id;
    run.environment.arguments->value = rng.Normal();
    for (uint64_t i = rng.Below(3); i > 0; --i) {
      auto& [name, wrapper] =
          run.environment.wrappers.emplace_back("clip", std::make_unique<Wrapper>());
      wrapper->scale = rng.Normal();
    }
    const std::string yaml = ToYaml(run);
    SCOPED_TRACE(yaml);
    const RunConfig back = Parsed(yaml);
    EXPECT_EQ(ToYaml(back), yaml);
    EXPECT_EQ(back.learn_std, run.learn_std);
    EXPECT_EQ(back.steps, run.steps);
    EXPECT_EQ(back.minibatch, run.minibatch);
    EXPECT_EQ(back.seed, run.seed);
    EXPECT_EQ(back.learning_rate, run.learning_rate);
    EXPECT_EQ(back.limit, run.limit);
    EXPECT_EQ(back.name, run.name);
    EXPECT_EQ(back.activation, run.activation);
    EXPECT_EQ(back.hidden, run.hidden);
    EXPECT_EQ(back.betas, run.betas);
    EXPECT_EQ(back.tags, run.tags);
    EXPECT_EQ(back.environment.arguments->value, run.environment.arguments->value);
    ASSERT_EQ(back.environment.wrappers.size(), run.environment.wrappers.size());
    for (size_t i = 0; i < back.environment.wrappers.size(); ++i) {
      EXPECT_EQ(back.environment.wrappers[i].second->scale,
                run.environment.wrappers[i].second->scale);
    }
    if (HasFailure()) break;
  }
}

TEST(Config, HelpListsEveryFieldOnceWithDefaultLimitsAndText) {
  const std::string help = ConfigHelp(RunConfig());
  EXPECT_THAT(
      help, HasSubstr("  learning_rate                     0.0003        Adam step size (> 0)\n"));
  EXPECT_THAT(
      help,
      HasSubstr("  activation                        tanh          between layers (tanh|relu)\n"));
  EXPECT_THAT(help, HasSubstr("  environment.arguments.gravity     9.8           physics\n"));
  EXPECT_THAT(help,
              HasSubstr("  environment.wrappers              []            applied in this order"));
  EXPECT_EQ(std::count(help.begin(), help.end(), '\n'), 15);
}

TEST(Config, HostileYamlOfTheReferenceIsRefusedWhereItsKeysAreKnown) {
  const char* reference = std::getenv("WEFT_REFERENCE");
  if (reference == nullptr) GTEST_SKIP() << "WEFT_REFERENCE is unset: hostile/yaml is not there";
  const std::string folder = std::string(reference) + "/hostile/yaml/";
  for (const std::string& name : ListDirectory(folder)) {
    SCOPED_TRACE(name);
    EXPECT_THAT(Refused(ReadFile(folder + name)), StartsWith("run.yaml:"));
  }
}

}  // namespace
}  // namespace weft
