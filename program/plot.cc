// weft plot: a metric of runs over steps or over another metric, drawn by gnuplot through a pipe.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
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

using Points = std::vector<std::pair<double, double>>;  // in the order of steps

struct Curve {
  std::string title;
  Points points;
};

// Running mean of the values over the last twentieth of the curve and, where the places are another
// metric's values, of these too.
Points Smooth(const Points& points, bool both) {
  const size_t window = std::max<size_t>(1, points.size() / 20);
  Points smooth;
  double places = 0, values = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto [old_place, old_value] = i < window ? std::pair(0.0, 0.0) : points[i - window];
    places += points[i].first - old_place;
    values += points[i].second - old_value;
    const auto count = static_cast<double>(std::min(i + 1, window));
    smooth.emplace_back(both ? places / count : points[i].first, values / count);
  }
  return smooth;
}

std::string DataBlock(const std::string& name, const Points& points) {
  std::string block = fmt::format("${} << EOD\n", name);
  for (const auto& [x, y] : points) block += fmt::format("{} {}\n", x, y);
  return block + "EOD\n";
}

Curve ReadCurve(const RunDirectory& run, const std::string& metric, const std::string& over) {
  Curve curve{.title = run.name()};
  const std::string path = run.path() + "/metrics.jsonl";
  std::ifstream file(path);
  if (!file)
    throw Error(ErrorCode::kConfig, path + " is missing: the run has not logged anything yet");
  std::vector<std::string> seen;
  for (std::string line; std::getline(file, line);) {
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object()) continue;  // a line cut short by a crash
    const auto value = row.find(metric), place = row.find(over.empty() ? "step" : over);
    if (value != row.end() && value->is_number() && place != row.end() && place->is_number()) {
      curve.points.emplace_back(*place, *value);
    }
    for (const auto& [name, unused] : row.items()) {
      if (std::ranges::find(seen, name) == seen.end()) seen.push_back(name);
    }
  }
  if (curve.points.empty()) {
    const bool there = std::ranges::find(seen, metric) != seen.end();
    const std::string& missing = there ? over : metric;
    throw Error(ErrorCode::kConfig, path + " has no metric " + missing + DidYouMean(missing, seen) +
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

void Draw(const std::vector<Curve>& curves, const std::string& metric, const std::string& over,
          const std::string& output) {
  const bool svg = output.ends_with(".svg");
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) {  // a pipe to nothing is a signal
    throw Error(ErrorCode::kUnavailable, "there is no gnuplot (Debian package gnuplot-nox)");
  }
  FILE* pipe = popen("gnuplot", "w");
  if (pipe == nullptr)
    throw Error(ErrorCode::kUnavailable, "gnuplot cannot be started (Debian package gnuplot-nox)");
  double last = 0;
  for (const Curve& curve : curves) last = std::max(last, curve.points.back().first);
  std::string script = fmt::format(
      "set terminal {} size 960,540 {}\nset output '{}'\nset grid lc rgb '#dddddd'\nset border 3\n"
      "set tics nomirror\nset key left top\n{}set xlabel '{}' noenhanced\n"
      "set ylabel '{}' noenhanced\n",
      svg ? "svg" : "pngcairo", svg ? "" : "font 'Sans,11'", output,
      over.empty() ? fmt::format("set xrange [0:{}]\nset format x '%.0s%c'\n", last) : "",
      over.empty() ? "environment steps" : over, metric);
  for (size_t i = 0; i < curves.size(); ++i) {
    script += DataBlock(fmt::format("raw{}", i), curves[i].points);
    script += DataBlock(fmt::format("smooth{}", i), Smooth(curves[i].points, !over.empty()));
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

std::string DrawPlot(const PlotOptions& options) {
  std::vector<Curve> curves;
  std::string output = options.output;
  for (const auto& name : options.runs) {
    const auto run = RunDirectory::Open(name);
    if (output.empty()) output = run.path() + "/" + options.metric + ".png";
    curves.push_back(ReadCurve(run, options.metric, options.over));
  }
  if (!output.ends_with(".png") && !output.ends_with(".svg")) {
    throw Error(ErrorCode::kConfig, "--output must end in .png or .svg, not " + output);
  }
  if (output.find('\'') != std::string::npos)
    throw Error(ErrorCode::kConfig, "--output must not contain quotes");
  Draw(curves, options.metric, options.over, output);
  return output;
}

int Plot(const PlotOptions& options) {
  const std::string output = DrawPlot(options);
  if (options.json) {
    fmt::print("{}\n",
               Json{{"output", output}, {"metric", options.metric}, {"runs", options.runs}}.dump());
  } else {
    fmt::print("{}\n", output);
  }
  return 0;
}

}  // namespace weft
