// The methods of texts, lists, tuples, dicts and loops that templates may call.
#include <algorithm>
#include <span>

#include "language/template/interpreter.h"
#include "language/template/text_functions.h"
#include "language/unicode.h"

namespace weft::jinja {
namespace {

constexpr std::string_view kTextMethods[] = {
    "capitalize",   "center",     "count",   "endswith",   "find",      "format",  "index",
    "isalnum",      "isalpha",    "isdigit", "islower",    "isnumeric", "isspace", "isupper",
    "join",         "ljust",      "lower",   "lstrip",     "partition", "replace", "removeprefix",
    "removesuffix", "rfind",      "rjust",   "rpartition", "rsplit",    "rstrip",  "split",
    "splitlines",   "startswith", "strip",   "title",      "upper",     "zfill"};
constexpr std::string_view kListMethods[] = {"count", "index", "copy"};
constexpr std::string_view kDictMethods[] = {"copy", "get", "items", "keys", "values"};
constexpr std::string_view kLoopMembers[] = {"index",  "index0", "revindex", "revindex0", "first",
                                             "last",   "length", "previtem", "nextitem",  "depth",
                                             "depth0", "cycle",  "changed"};
// They would change what is immutable here.
constexpr std::string_view kUnsafeListMethods[] = {"append", "clear",  "extend",  "insert",
                                                   "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kUnsafeDictMethods[] = {"clear", "pop", "popitem", "setdefault",
                                                   "update"};

bool Has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

List ToList(const std::vector<std::string>& texts) {
  List items;
  for (const std::string& text : texts) items.emplace_back(text);
  return items;
}

// Arguments start and stop in code points, as a slice has them, in bytes.
std::pair<size_t, size_t> Range(const std::string& text, const Value* start, const Value* stop) {
  const auto size = static_cast<int64_t>(CountCodePoints(text));
  const auto place = [&](const Value* value, int64_t fallback) {
    int64_t at = value && !value->IsNone() ? IntegerOf(*value, "a position") : fallback;
    if (at < 0) at += size;
    return std::clamp<int64_t>(at, 0, size);
  };
  const auto byte = [&](int64_t at) {
    size_t position = 0;
    for (; at > 0; --at) position += DecodeCodePoint(text, position).size;
    return position;
  };
  return {byte(place(start, 0)), byte(place(stop, size))};
}

// str.find, count, index and rfind.
Value Search(std::string_view name, const std::string& text, const Arguments& arguments) {
  const auto bound = Bind(arguments, name, {"sub", "start", "end"});
  if (!bound[0]) Raise(std::string(name) + " expected at least 1 argument");
  const std::string& wanted = TextOf(*bound[0], name);
  const auto [begin, end] = Range(text, bound[1], bound[2]);
  const std::string_view searched = std::string_view(text).substr(0, std::max(begin, end));
  if (name == "count") {
    if (wanted.empty()) return CountCodePoints(searched.substr(begin)) + 1;
    int64_t count = 0;
    for (size_t at = searched.find(wanted, begin); at != std::string_view::npos;
         at = searched.find(wanted, at + wanted.size())) {
      ++count;
    }
    return count;
  }
  size_t at = name == "rfind" ? searched.rfind(wanted) : searched.find(wanted, begin);
  if (at == std::string_view::npos || at < begin) {
    if (name == "index") Raise("substring not found");
    return -1;
  }
  return CountCodePoints(searched.substr(0, at));
}

// str.startswith and endswith, of one text or a tuple of them.
bool HasEnd(std::string_view name, const std::string& text, const Arguments& arguments) {
  const auto bound = Bind(arguments, name, {"prefix"});
  if (!bound[0]) Raise(std::string(name) + " takes one text or a tuple of texts");
  const auto holds = [&](const Value& value) {
    const std::string& part = TextOf(value, name);
    return name == "startswith" ? text.starts_with(part) : text.ends_with(part);
  };
  if (bound[0]->IsTuple()) return std::ranges::any_of(*bound[0]->items(), holds);
  return holds(*bound[0]);
}

// isalpha and its like: not empty, and all code points are.
bool AllAre(std::string_view name, const std::string& text) {
  const std::u32string codes = ToCodePoints(text);
  if (name == "isupper" || name == "islower") {
    const bool upper = name == "isupper";
    const bool none = std::ranges::none_of(codes, upper ? IsLower : IsUpper);
    return none && std::ranges::any_of(codes, upper ? IsUpper : IsLower);
  }
  return !codes.empty() && std::ranges::all_of(codes, [&](char32_t code) {
    if (name == "isalpha") return IsLetter(code);
    if (name == "isdigit") return IsDecimal(code);
    if (name == "isnumeric") return IsNumber(code);
    if (name == "isspace") return IsPythonSpace(code);
    return IsLetter(code) || IsNumber(code);
  });
}

std::string Padded(Interpreter& interpreter, std::string_view name, const std::string& text,
                   const Arguments& arguments) {
  const auto bound = Bind(arguments, name, {"width", "fillchar"});
  if (!bound[0]) Raise(std::string(name) + " needs a width");
  const int64_t width = IntegerOf(*bound[0], name);
  const auto size = static_cast<int64_t>(CountCodePoints(text));
  const std::string fill = name == "zfill" ? "0" : bound[1] ? TextOf(*bound[1], name) : " ";
  if (CountCodePoints(fill) != 1) Raise("the fill character must be exactly one character long");
  if (width <= size) return text;
  interpreter.budget().TakeBytes(static_cast<uint64_t>(width - size) * fill.size());
  const int64_t missing = width - size;
  // Python puts the odd one to the left when the width is odd.
  const int64_t left = name == "ljust"    ? 0
                       : name == "center" ? missing / 2 + (missing & width & 1)
                                          : missing;
  const bool sign = name == "zfill" && (text.starts_with('-') || text.starts_with('+'));
  std::string out = sign ? text.substr(0, 1) : "";
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text.substr(sign ? 1 : 0);
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

Value Partition(std::string_view name, const std::string& text, const Arguments& arguments) {
  const auto bound = Bind(arguments, name, {"sep"});
  if (!bound[0] || !bound[0]->text() || bound[0]->text()->empty()) Raise("empty separator");
  const std::string& separator = *bound[0]->text();
  const bool right = name == "rpartition";
  const size_t at = right ? text.rfind(separator) : text.find(separator);
  if (at == std::string::npos) {
    return {right ? List{"", "", text} : List{text, "", ""}, true};
  }
  return {List{text.substr(0, at), separator, text.substr(at + separator.size())}, true};
}

Value CallText(Interpreter& interpreter, const std::string& text, std::string_view name,
               const Arguments& arguments) {
  interpreter.budget().TakeSteps(text.size() / 16 + 1);
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const auto bound = Bind(arguments, name, {"chars"});
    const bool all = !bound[0] || bound[0]->IsNone();
    const StripSide side = name == "strip"    ? StripSide::kBoth
                           : name == "lstrip" ? StripSide::kLeft
                                              : StripSide::kRight;
    return interpreter.NewText(Strip(text, all ? nullptr : &TextOf(*bound[0], name), side));
  }
  if (name == "split" || name == "rsplit") {
    const auto bound = Bind(arguments, name, {"sep", "maxsplit"});
    const bool space = !bound[0] || bound[0]->IsNone();
    const std::string* separator = space ? nullptr : &TextOf(*bound[0], name);
    if (separator && separator->empty()) Raise("empty separator");
    const int64_t most = bound[1] ? IntegerOf(*bound[1], name) : -1;
    interpreter.budget().TakeBytes(text.size() * 8);
    return interpreter.NewList(ToList(SplitText(text, separator, most, name == "rsplit")));
  }
  if (name == "startswith" || name == "endswith") return HasEnd(name, text, arguments);
  if (name == "find" || name == "rfind" || name == "index" || name == "count") {
    return Search(name, text, arguments);
  }
  if (name == "replace") {
    const auto bound = Bind(arguments, name, {"old", "new", "count"});
    if (!bound[0] || !bound[1]) Raise("replace expected at least 2 arguments");
    const std::string &from = TextOf(*bound[0], name), &to = TextOf(*bound[1], name);
    const int64_t most = bound[2] ? IntegerOf(*bound[2], name) : -1;
    // No more replacements than code points and one.
    interpreter.budget().TakeBytes(to.size() <= from.size() ? 0
                                                            : (text.size() + 1) * to.size() /
                                                                  std::max<size_t>(from.size(), 1));
    return interpreter.NewText(ReplaceAll(text, from, to, most));
  }
  if (name == "removeprefix" || name == "removesuffix") {
    const auto bound = Bind(arguments, name, {"part"});
    if (!bound[0]) Raise(std::string(name) + " expected 1 argument");
    const std::string& part = TextOf(*bound[0], name);
    if (name == "removeprefix" && text.starts_with(part)) return text.substr(part.size());
    if (name == "removesuffix" && text.ends_with(part)) {
      return text.substr(0, text.size() - part.size());
    }
    return text;
  }
  if (name == "join") {
    const auto bound = Bind(arguments, name, {"iterable"});
    if (!bound[0]) Raise("join expected 1 argument");
    for (const Value& item : interpreter.Iterate(*bound[0])) TextOf(item, "an item of join");
    return Filter(interpreter, name, *bound[0], {{text}, {}});
  }
  if (name == "format") return interpreter.NewText(FormatBraces(interpreter, text, arguments));
  if (name == "center" || name == "ljust" || name == "rjust" || name == "zfill") {
    return Padded(interpreter, name, text, arguments);
  }
  if (name == "partition" || name == "rpartition") return Partition(name, text, arguments);
  if (name == "splitlines") {
    const auto bound = Bind(arguments, name, {"keepends"});
    interpreter.budget().TakeBytes(text.size() * 8);
    return interpreter.NewList(ToList(SplitLines(text, bound[0] && bound[0]->Truthy())));
  }
  Bind(arguments, name, {});
  if (name == "lower") return interpreter.NewText(Lower(text));
  if (name == "upper") return interpreter.NewText(Upper(text));
  if (name == "capitalize") return interpreter.NewText(Capitalise(text));
  if (name == "title") return interpreter.NewText(TitleCase(text));
  return AllAre(name, text);
}

Value CallDict(Interpreter& interpreter, const Dict& dict, std::string_view name,
               const Arguments& arguments) {
  if (name == "get") {
    const auto bound = Bind(arguments, name, {"key", "default"});
    if (!bound[0]) Raise("get expected at least 1 argument, got 0");
    CheckHashable(*bound[0]);
    const Value* found = FindMember(dict, *bound[0], interpreter.budget());
    return found ? *found : bound[1] ? *bound[1] : Value();
  }
  Bind(arguments, name, {});
  if (name == "copy") return dict;
  List items;
  for (const auto& [key, value] : dict) {
    if (name == "items") {
      items.push_back(interpreter.NewList({key, value}, true));
    } else {
      items.push_back(name == "keys" ? key : value);
    }
  }
  return interpreter.NewList(std::move(items));
}

Value CallList(Interpreter& interpreter, const Value& list, std::string_view name,
               const Arguments& arguments) {
  if (name == "copy") return list;
  const auto bound = Bind(arguments, name, {"value"});
  if (!bound[0]) Raise(std::string(name) + " expected 1 argument");
  int64_t count = 0;
  for (size_t i = 0; i < list.items()->size(); ++i) {
    if (!Equal((*list.items())[i], *bound[0], interpreter.budget())) continue;
    if (name == "index") return i;
    ++count;
  }
  if (name == "index") Raise("the value is not in the list");
  return count;
}

Value CallLoop(Interpreter& interpreter, Loop& loop, std::string_view name,
               const Arguments& arguments) {
  const List& given = arguments.positional;
  if (name == "cycle") {
    if (given.empty()) Raise("no items for cycling given");
    return given[static_cast<size_t>(loop.index) % given.size()];
  }
  const bool same = loop.changed.size() == given.size() && loop.index > 0 &&
                    std::ranges::equal(loop.changed, given, [&](const Value& a, const Value& b) {
                      return Equal(a, b, interpreter.budget());
                    });
  loop.changed = given;
  return !same;
}

}  // namespace

MethodKind FindMethod(const Value& object, std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__")) return MethodKind::kUnsafe;
  const auto kind = [&](std::span<const std::string_view> safe,
                        std::span<const std::string_view> unsafe) {
    return Has(safe, name)     ? MethodKind::kSafe
           : Has(unsafe, name) ? MethodKind::kUnsafe
                               : MethodKind::kNone;
  };
  if (object.text()) return kind(kTextMethods, {});
  if (object.IsTuple()) return kind(std::span(kListMethods).first(2), {});
  if (object.items()) return kind(kListMethods, kUnsafeListMethods);
  if (object.members()) return kind(kDictMethods, kUnsafeDictMethods);
  if (object.loop()) return kind(kLoopMembers, {});
  return MethodKind::kNone;
}

Value LoopMember(const Value& value, std::string_view name) {
  const Loop& loop = *value.loop();
  const auto size = static_cast<int64_t>(loop.items.size());
  const auto neighbour = [&](int64_t at) -> Value {
    if (at >= 0 && at < size) return loop.items[static_cast<size_t>(at)];
    return Missing("there is no such item");
  };
  if (name == "index") return loop.index + 1;
  if (name == "index0") return loop.index;
  if (name == "revindex") return size - loop.index;
  if (name == "revindex0") return size - loop.index - 1;
  if (name == "first") return loop.index == 0;
  if (name == "last") return loop.index == size - 1;
  if (name == "length") return size;
  if (name == "depth") return loop.depth;
  if (name == "depth0") return loop.depth - 1;
  if (name == "previtem") return neighbour(loop.index - 1);
  if (name == "nextitem") return neighbour(loop.index + 1);
  return MakeCallable({Callable::Kind::kMethod, std::string(name), value});
}

Value CallMethod(Interpreter& interpreter, const Value& object, std::string_view name,
                 const Arguments& arguments) {
  if (const auto* text = object.text()) return CallText(interpreter, *text, name, arguments);
  if (object.items()) return CallList(interpreter, object, name, arguments);
  if (const auto* members = object.members()) {
    return CallDict(interpreter, *members, name, arguments);
  }
  return CallLoop(interpreter, *object.loop(), name, arguments);
}

}  // namespace weft::jinja
