// The filters of Jinja that chat templates use.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "language/template/scalar_filters.h"
#include "language/template/text_functions.h"
#include "language/unicode.h"

namespace weft::jinja {
namespace {

using Function = Value (*)(Interpreter&, const Value&, const Arguments&);

Value TextFilter(Interpreter& interpreter, const Value& value,
                 std::string (*change)(std::string_view)) {
  return interpreter.NewText(change(interpreter.TextOf(value)));
}

// An item by "name", "a.b" or 0, as attribute arguments have it; the item itself without one.
Value AttributeOf(Interpreter& interpreter, Value item, const Value* path) {
  if (!path || path->IsNone()) return item;
  if (!path->text()) return interpreter.Item(item, *path);
  const std::string point = ".";
  for (const std::string& part : SplitText(*path->text(), &point, -1, false)) {
    const bool index = !part.empty() && part.size() < 10 &&
                       std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    item = interpreter.Item(item, index ? Value(int64_t{std::atoi(part.c_str())}) : Value(part));
  }
  return item;
}

// What sort, unique, min and max compare: texts without case unless asked.
Value SortKey(Interpreter& interpreter, const Value& item, const Value* attribute,
              bool case_sensitive) {
  Value key = AttributeOf(interpreter, item, attribute);
  if (!case_sensitive && key.text()) return Lower(*key.text());
  return key;
}

Value Extreme(Interpreter& interpreter, const Value& value, const Arguments& arguments,
              int direction) {
  const auto bound = Bind(arguments, "min or max", {"case_sensitive", "attribute"});
  const List items = interpreter.Iterate(value);
  const auto key = [&](const Value& item) {
    return SortKey(interpreter, item, bound[1], TruthyOr(bound[0], false));
  };
  if (items.empty()) {
    return Missing("No aggregated item, sequence was empty.");
  }
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    if (Order(interpreter, key(items[i]), key(items[best]), "<") * direction > 0) best = i;
  }
  return items[best];
}

// select, reject, selectattr and rejectattr.
Value Select(Interpreter& interpreter, const Value& value, const Arguments& arguments,
             bool by_attribute, bool wanted) {
  size_t used = 0;
  const auto& given = arguments.positional;
  if (by_attribute && given.empty()) Raise("the filter needs the name of an attribute");
  const Value* attribute = by_attribute ? &given[used++] : nullptr;
  std::string test;
  Arguments rest;
  if (used < given.size()) {
    test = TextOf(given[used++], "the name of a test");
    if (!HasTest(test)) Raise("No test named '" + test + "'.");
    rest.positional.assign(given.begin() + static_cast<std::ptrdiff_t>(used), given.end());
    rest.keywords = arguments.keywords;
  }
  List out;
  if (!value.Truthy()) return List{};
  for (const Value& item : interpreter.Iterate(value)) {
    const Value tested = AttributeOf(interpreter, item, attribute);
    const bool holds = test.empty() ? tested.Truthy() : Test(interpreter, test, tested, rest);
    if (holds == wanted) out.push_back(item);
  }
  return interpreter.NewList(std::move(out));
}

Value Map(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  List out;
  const Value *attribute = nullptr, *fallback = nullptr;
  if (arguments.positional.empty()) {
    const auto bound = Bind(arguments, "map", {"attribute", "default"});
    attribute = bound[0];
    fallback = bound[1];
    if (!attribute) Raise("map requires a filter argument");
  }
  Arguments rest = arguments;
  std::string filter;
  if (!attribute) {
    filter = TextOf(rest.positional[0], "the name of a filter");
    if (!HasFilter(filter)) Raise("No filter named '" + filter + "'.");
    rest.positional.erase(rest.positional.begin());
  }
  if (!value.Truthy()) return List{};
  for (const Value& item : interpreter.Iterate(value)) {
    if (attribute) {
      const Value found = AttributeOf(interpreter, item, attribute);
      out.push_back(found.IsUndefined() && fallback ? *fallback : found);
    } else {
      out.push_back(Filter(interpreter, filter, item, rest));
    }
  }
  return interpreter.NewList(std::move(out));
}

Value Sort(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "sort", {"reverse", "case_sensitive", "attribute"});
  List items = interpreter.Iterate(value);
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) {
    keyed.emplace_back(SortKey(interpreter, item, bound[2], TruthyOr(bound[1], false)), item);
  }
  const bool reverse = TruthyOr(bound[0], false);
  std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
    return Order(interpreter, reverse ? b.first : a.first, reverse ? a.first : b.first, "<") < 0;
  });
  for (size_t i = 0; i < items.size(); ++i) items[i] = keyed[i].second;
  return interpreter.NewList(std::move(items));
}

Value DictSort(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "dictsort", {"case_sensitive", "by", "reverse"});
  if (!value.members()) Raise("dictsort needs a dict");
  const std::string by = bound[1] ? TextOf(*bound[1], "by of dictsort") : "key";
  if (by != "key" && by != "value") Raise("You can only sort by either \"key\" or \"value\"");
  List pairs;
  for (const auto& [key, member] : *value.members()) {
    pairs.push_back(interpreter.NewList({key, member}, true));
  }
  return Sort(interpreter, interpreter.NewList(std::move(pairs)),
              {{},
               {{"attribute", Value(by == "key" ? 0 : 1)},
                {"case_sensitive", TruthyOr(bound[0], false)},
                {"reverse", TruthyOr(bound[2], false)}}});
}

Value Join(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "join", {"d", "attribute"});
  const std::string between = bound[0] ? interpreter.TextOf(*bound[0]) : "";
  std::string out;
  bool first = true;
  for (const Value& item : interpreter.Iterate(value)) {
    const std::string text = interpreter.TextOf(AttributeOf(interpreter, item, bound[1]));
    interpreter.budget().TakeBytes(between.size() + text.size());
    if (!first) out += between;
    out += text;
    first = false;
  }
  return out;
}

Value Unique(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "unique", {"case_sensitive", "attribute"});
  List keys, out;
  for (const Value& item : interpreter.Iterate(value)) {
    Value key = SortKey(interpreter, item, bound[1], TruthyOr(bound[0], false));
    CheckHashable(key);
    const bool seen = std::ranges::any_of(
        keys, [&](const Value& other) { return Equal(other, key, interpreter.budget()); });
    if (seen) continue;
    keys.push_back(std::move(key));
    out.push_back(item);
  }
  return interpreter.NewList(std::move(out));
}

Value Length(const Value& value) {
  if (value.IsUndefined()) return 0;
  if (const auto* text = value.text()) return CountCodePoints(*text);
  if (const auto* items = value.items()) return items->size();
  if (const auto* members = value.members()) return members->size();
  Raise(std::string("object of type '") + value.TypeName() + "' has no len()");
}

Value Sum(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "sum", {"attribute", "start"});
  Value sum = bound[1] ? *bound[1] : Value(0);
  for (const Value& item : interpreter.Iterate(value)) {
    sum = Operate(interpreter, "+", sum, AttributeOf(interpreter, item, bound[0]));
  }
  return sum;
}

Value Batch(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "batch", {"linecount", "fill_with"});
  const int64_t size = IntegerOr(bound[0], 0, "batch");
  if (size < 1) Raise("batch needs the number of items in a row");
  List rows, row;
  for (const Value& item : interpreter.Iterate(value)) {
    row.push_back(item);
    if (static_cast<int64_t>(row.size()) < size) continue;
    rows.push_back(interpreter.NewList(std::move(row)));
    row.clear();
  }
  if (!row.empty()) {
    while (bound[1] && static_cast<int64_t>(row.size()) < size) {
      interpreter.budget().TakeBytes(sizeof(Value));
      row.push_back(*bound[1]);
    }
    rows.push_back(interpreter.NewList(std::move(row)));
  }
  return interpreter.NewList(std::move(rows));
}

Value End(Interpreter& interpreter, const Value& value, bool last) {
  const List items = interpreter.Iterate(value);
  if (items.empty()) {
    return Missing("No item, sequence was empty.");
  }
  return last ? items.back() : items.front();
}

Value Reverse(Interpreter& interpreter, const Value& value, const Arguments&) {
  if (value.text()) return Slice(interpreter, value, {}, {}, -1);
  List items = interpreter.Iterate(value);
  std::ranges::reverse(items);
  return interpreter.NewList(std::move(items));
}

Value Items(Interpreter& interpreter, const Value& value, const Arguments&) {
  if (value.IsUndefined()) return List{};
  if (!value.members()) Raise("Can only get item pairs from a mapping.");
  return CallMethod(interpreter, value, "items", {});
}

Value Default(Interpreter&, const Value& value, const Arguments& arguments) {
  const auto bound = Bind(arguments, "default", {"default_value", "boolean"});
  const bool missing = value.IsUndefined() || (TruthyOr(bound[1], false) && !value.Truthy());
  return !missing ? value : bound[0] ? *bound[0] : Value("");
}

Value Absolute(Interpreter& interpreter, const Value& value, const Arguments&) {
  if (const auto* number = value.As<double>()) return std::abs(*number);
  if (value.As<bool>()) return Operate(interpreter, "+", 0, value);
  return Order(interpreter, value, 0, "<") < 0 ? Operate(interpreter, "-", 0, value) : value;
}

// A method of str by the name of the filter.
template <const char* name>
Value Method(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  return CallMethod(interpreter, interpreter.TextOf(value), name, arguments);
}
constexpr char kStrip[] = "strip", kReplace[] = "replace", kCenter[] = "center";

struct Entry {
  std::string_view name;
  Function function;
};
constexpr Entry kFilters[] = {
    {"abs", Absolute},
    {"attr",
     [](Interpreter& in, const Value& value, const Arguments& arguments) {
       const auto bound = Bind(arguments, "attr", {"name"});
       return bound[0] ? in.Attribute(value, TextOf(*bound[0], "attr")) : Value();
     }},
    {"batch", Batch},
    {"capitalize", [](Interpreter& in, const Value& value,
                      const Arguments&) { return TextFilter(in, value, Capitalise); }},
    {"center", Method<kCenter>},
    {"count", [](Interpreter&, const Value& value, const Arguments&) { return Length(value); }},
    {"d", Default},
    {"default", Default},
    {"dictsort", DictSort},
    {"e", [](Interpreter& in, const Value& value,
             const Arguments&) { return TextFilter(in, value, EscapeHtml); }},
    {"escape", [](Interpreter& in, const Value& value,
                  const Arguments&) { return TextFilter(in, value, EscapeHtml); }},
    {"filesizeformat", FileSize},
    {"first",
     [](Interpreter& in, const Value& value, const Arguments&) { return End(in, value, false); }},
    {"float", ToFloat},
    {"forceescape", [](Interpreter& in, const Value& value,
                       const Arguments&) { return TextFilter(in, value, EscapeHtml); }},
    {"format",
     [](Interpreter& in, const Value& value, const Arguments& arguments) {
       return in.NewText(
           FormatPercent(in, in.TextOf(value), in.NewList(arguments.positional, true)));
     }},
    {"indent", Indent},
    {"int", ToInteger},
    {"items", Items},
    {"join", Join},
    {"last",
     [](Interpreter& in, const Value& value, const Arguments&) { return End(in, value, true); }},
    {"length", [](Interpreter&, const Value& value, const Arguments&) { return Length(value); }},
    {"list", [](Interpreter& in, const Value& value,
                const Arguments&) { return Value(in.Iterate(value)); }},
    {"lower", [](Interpreter& in, const Value& value,
                 const Arguments&) { return TextFilter(in, value, Lower); }},
    {"map", Map},
    {"max", [](Interpreter& in, const Value& value,
               const Arguments& arguments) { return Extreme(in, value, arguments, 1); }},
    {"min", [](Interpreter& in, const Value& value,
               const Arguments& arguments) { return Extreme(in, value, arguments, -1); }},
    {"reject",
     [](Interpreter& in, const Value& value, const Arguments& arguments) {
       return Select(in, value, arguments, false, false);
     }},
    {"rejectattr",
     [](Interpreter& in, const Value& value, const Arguments& arguments) {
       return Select(in, value, arguments, true, false);
     }},
    {"replace", Method<kReplace>},
    {"reverse", Reverse},
    {"round", Round},
    {"safe", [](Interpreter& in, const Value& value,
                const Arguments&) { return in.NewText(in.TextOf(value)); }},
    {"select",
     [](Interpreter& in, const Value& value, const Arguments& arguments) {
       return Select(in, value, arguments, false, true);
     }},
    {"selectattr",
     [](Interpreter& in, const Value& value, const Arguments& arguments) {
       return Select(in, value, arguments, true, true);
     }},
    {"sort", Sort},
    {"string", [](Interpreter& in, const Value& value,
                  const Arguments&) { return in.NewText(in.TextOf(value)); }},
    {"sum", Sum},
    {"title", [](Interpreter& in, const Value& value,
                 const Arguments&) { return TextFilter(in, value, TitleWords); }},
    {"tojson", [](Interpreter& in, const Value& value,
                  const Arguments& arguments) { return Value(ToJson(in, value, arguments)); }},
    {"trim", Method<kStrip>},
    {"unique", Unique},
    {"upper", [](Interpreter& in, const Value& value,
                 const Arguments&) { return TextFilter(in, value, Upper); }},
    {"wordcount", [](Interpreter& in, const Value& value,
                     const Arguments&) { return WordCount(in.TextOf(value)); }},
};

const Entry* FindEntry(std::string_view name) {
  const auto* found = std::ranges::find(kFilters, name, &Entry::name);
  return found == std::end(kFilters) ? nullptr : found;
}

}  // namespace

bool HasFilter(std::string_view name) {
  return FindEntry(name) != nullptr;
}

Value Filter(Interpreter& interpreter, std::string_view name, const Value& value,
             const Arguments& arguments) {
  interpreter.budget().TakeSteps(1 + (value.text() ? value.text()->size() / 16 : 0));
  return FindEntry(name)->function(interpreter, value, arguments);
}

}  // namespace weft::jinja
