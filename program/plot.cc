// weft plot: a metric of runs over environment steps, drawn by gnuplot through a pipe.
#include <algorithm>
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

using Points = std::vector<std::pair<double, double>>;  // steps, value

struct Curve {
  std::string title;
  Points points;
};

// Running mean over the last twentieth of the curve.
Points Smooth(const Points& points) {
  const size_t window = std::max<size_t>(1, points.size() / 20);
  Points smooth;
  double sum = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    sum += points[i].second - (i < window ? 0 : points[i - window].second);
    smooth.emplace_back(points[i].first, sum / static_cast<double>(std::min(i + 1, window)));
  }
  return smooth;
}

std::string DataBlock(const std::string& name, const Points& points) {
  std::string block = fmt::format("${} << EOD\n", name);
  for (const auto& [x, y] : points) block += fmt::format("{} {}\n", x, y);
  return block + "EOD\n";
}

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

// RRGGBB; seven that the colour-blind can tell apart (Okabe and Ito 2008, without black), in turn.
std::string_view Colour(size_t index) {
  constexpr std::string_view kColours[] = {"0072b2", "e69f00", "009e73", "cc79a7",
                                           "d55e00", "56b4e9", "f0e442"};
  return kColours[index % std::size(kColours)];
}

void Draw(const std::vector<Curve>& curves, const std::string& metric, const std::string& output) {
  const bool svg = output.ends_with(".svg");
  FILE* pipe = popen("gnuplot", "w");
  if (pipe == nullptr)
    throw Error(ErrorCode::kUnavailable, "gnuplot cannot be started (Debian package gnuplot-nox)");
  double last = 0;
  for (const Curve& curve : curves) last = std::max(last, curve.points.back().first);
  std::string script = fmt::format(
      "set terminal {} size 960,540 {}\nset output '{}'\nset grid lc rgb '#dddddd'\nset border 3\n"
      "set tics nomirror\nset key left top\nset xrange [0:{}]\nset format x '%.0s%c'\n"
      "set xlabel 'environment steps'\nset ylabel '{}' noenhanced\n",
      svg ? "svg" : "pngcairo", svg ? "" : "font 'Sans,11'", output, last, metric);
  for (size_t i = 0; i < curves.size(); ++i) {
    script += DataBlock(fmt::format("raw{}", i), curves[i].points);
    script += DataBlock(fmt::format("smooth{}", i), Smooth(curves[i].points));
  }
  std::vector<std::string> lines;
  for (size_t i = 0; i < curves.size(); ++i)  // pale, so that the means stand before all of them
    lines.push_back(fmt::format("$raw{0} with lines lw 1 lc rgb '#b0{1}' notitle", i, Colour(i)));
  for (size_t i = 0; i < curves.size(); ++i) {
    lines.push_back(fmt::format("$smooth{} with lines lw 3 lc rgb '#{}' title '{}' noenhanced", i,
                                Colour(i), curves[i].title));
  }
  script += "plot " + Join(lines, ", ") + "\n";
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
