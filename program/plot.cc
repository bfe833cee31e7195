// weft plot: a metric of runs over environment steps, drawn by gnuplot through a pipe.
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file.h"
#include "program/commands.h"
#include "program/run_directory.h"

namespace weft {
namespace {

using Json = nlohmann::json;

struct Curve {
  std::string title;
  std::vector<std::pair<double, double>> points;  // steps, value
};

Curve ReadCurve(const RunDirectory& run, const std::string& metric) {
  Curve curve{.title = run.name()};
  const std::string path = run.path() + "/metrics.jsonl";
  std::ifstream file(path);
  if (!file)
    throw Error(ErrorCode::kConfig, path + " is missing: the run has not logged anything yet");
  std::vector<std::string> seen;
  for (std::string line; std::getline(file, line);) {
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object()) continue;  // a line cut short by a crash
    const auto value = row.find(metric);
    if (value != row.end() && value->is_number()) curve.points.emplace_back(row.at("step"), *value);
    for (const auto& [name, unused] : row.items()) {
      if (std::ranges::find(seen, name) == seen.end()) seen.push_back(name);
    }
  }
  if (curve.points.empty()) {
    throw Error(ErrorCode::kConfig, path + " has no metric " + metric + DidYouMean(metric, seen) +
                                        "; it has " + Join(seen, ", "));
  }
  return curve;
}

void Draw(const std::vector<Curve>& curves, const std::string& metric, const std::string& output) {
  const bool svg = output.ends_with(".svg");
  FILE* pipe = popen("gnuplot", "w");
  if (pipe == nullptr)
    throw Error(ErrorCode::kUnavailable, "gnuplot cannot be started (Debian package gnuplot-nox)");
  std::string script = fmt::format(
      "set terminal {} size 960,540 {}\nset output '{}'\nset grid lc rgb '#dddddd'\nset border 3\n"
      "set tics nomirror\nset key left top\nset format x '%.0s%c'\nset xlabel 'environment steps'\n"
      "set ylabel '{}' noenhanced\nplot ",
      svg ? "svg" : "pngcairo", svg ? "" : "font 'Sans,11'", output, metric);
  for (size_t i = 0; i < curves.size(); ++i) {
    script +=
        fmt::format("{}'-' with lines lw 2 title '{}' noenhanced", i ? ", " : "", curves[i].title);
  }
  script += "\n";
  for (const Curve& curve : curves) {
    for (const auto& [x, y] : curve.points) script += fmt::format("{} {}\n", x, y);
    script += "e\n";
  }
  std::fwrite(script.data(), 1, script.size(), pipe);
  if (pclose(pipe) != 0) {
    throw Error(ErrorCode::kUnavailable,
                "gnuplot could not draw " + output + " (Debian package gnuplot-nox)");
  }
}

}  // namespace

int Plot(const PlotOptions& options) {
  std::vector<Curve> curves;
  std::string output = options.output;
  for (const auto& name : options.runs) {
    const auto run = RunDirectory::Open(name);
    if (output.empty()) output = run.path() + "/" + options.metric + ".png";
    curves.push_back(ReadCurve(run, options.metric));
  }
  if (!output.ends_with(".png") && !output.ends_with(".svg")) {
    throw Error(ErrorCode::kConfig, "--output must end in .png or .svg, not " + output);
  }
  if (output.find('\'') != std::string::npos)
    throw Error(ErrorCode::kConfig, "--output must not contain quotes");
  Draw(curves, options.metric, output);
  if (options.json) {
    fmt::print("{}\n",
               Json{{"output", output}, {"metric", options.metric}, {"runs", options.runs}}.dump());
  } else {
    fmt::print("{}\n", output);
  }
  return 0;
}

}  // namespace weft
