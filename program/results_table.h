// Tables in Markdown files that commands rewrite: rows between "<!-- NAME -->" and "<!-- /NAME
// -->", one row per key. Text outside the marks is never touched.
#pragma once

#include <string>
#include <vector>

namespace weft {

// Replaces the rows of the table `name` whose cells in the columns `key` equal a new row's, and
// appends the others; the header is written as given. A file without the marks gets them at its
// end, a missing file is made.
void UpdateTable(const std::string& path, const std::string& name,
                 const std::vector<std::string>& header,
                 const std::vector<std::vector<std::string>>& rows,
                 const std::vector<size_t>& key = {0});

// The same rows for a terminal, columns aligned.
std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows);

}  // namespace weft
