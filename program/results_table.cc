#include "program/results_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"

namespace weft {
namespace {

using Cells = std::vector<std::string>;

std::string Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

Cells SplitRow(std::string_view line) {
  Cells cells;
  line.remove_prefix(1);
  while (!line.empty()) {
    const size_t bar = line.find('|');
    if (bar == std::string_view::npos) break;
    cells.push_back(Trim(line.substr(0, bar)));
    line.remove_prefix(bar + 1);
  }
  return cells;
}

std::string ToLine(const Cells& cells) {
  return "| " + Join(cells, " | ") + " |\n";
}

}  // namespace

void UpdateTable(const std::string& path, const std::string& name, const Cells& header,
                 const std::vector<Cells>& rows, const std::vector<size_t>& key) {
  const std::string open = "<!-- " + name + " -->\n", close = "<!-- /" + name + " -->\n";
  std::string text = FileExists(path) ? ReadFile(path, 1 << 22) : "";
  size_t begin = text.find(open), end = text.find(close);
  if (begin == std::string::npos) {
    if (!text.empty()) text += "\n";
    begin = text.size();
    text += open + close;
    end = begin + open.size();
  }
  if (end == std::string::npos || end < begin) {
    throw Error(ErrorCode::kCorrupt, path + ": the mark " + open + " is not closed");
  }
  begin += open.size();

  std::vector<Cells> merged;
  std::string_view old(text.data() + begin, end - begin);
  for (int line_number = 0; !old.empty(); ++line_number) {
    const size_t newline = std::min(old.find('\n'), old.size() - 1);
    const std::string_view line = old.substr(0, newline);
    if (line_number >= 2 && line.starts_with("|")) merged.push_back(SplitRow(line));
    old.remove_prefix(newline + 1);
  }
  for (const Cells& row : rows) {
    const auto same = std::ranges::find_if(merged, [&](const Cells& present) {
      return std::ranges::all_of(
          key, [&](size_t i) { return i < present.size() && present[i] == row[i]; });
    });
    if (same != merged.end()) {
      *same = row;
    } else {
      merged.push_back(row);
    }
  }
  std::string table = ToLine(header) + ToLine(Cells(header.size(), "---"));
  for (const Cells& row : merged) table += ToLine(row);
  WriteFileAtomic(path, text.substr(0, begin) + table + text.substr(end));
}

std::string FormatTable(const Cells& header, const std::vector<Cells>& rows) {
  std::vector<size_t> widths(header.size());
  const auto widen = [&](const Cells& cells) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  };
  widen(header);
  for (const Cells& row : rows) widen(row);
  std::string text;
  const auto append = [&](const Cells& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      text += cells[i];
      if (i + 1 < cells.size()) text += std::string(widths[i] - cells[i].size() + 2, ' ');
    }
    text += '\n';
  };
  append(header);
  for (const Cells& row : rows) append(row);
  return text;
}

}  // namespace weft
