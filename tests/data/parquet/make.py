"""Writes the Parquet files beside it and, for each that holds rows, the same rows as JSON lines.

    pip install pyarrow && python tests/data/parquet/make.py
"""
import datetime
import decimal
import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string()), ("name", pa.string())])
ODD = ['a "quoted" word', "back\\slash", "line\nfeed\tand\x01control", "grüße 文字 🙂", "</script>", "\u2028"]


def chat(i, answer):
    return [{"role": "user", "content": f"question {i}: {ODD[i % len(ODD)]}", "name": "ann" if i % 3 else None},
            {"role": "assistant", "content": answer, "name": None}]


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def write(name, rows, schema, **options):
    table = pa.Table.from_pylist(rows, schema=pa.schema(schema))
    pq.write_table(table, HERE / f"{name}.parquet", **options)
    lines = [json.dumps(without_nulls(row), ensure_ascii=False) for row in rows]
    (HERE / f"{name}.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def refused(name, column, values, kind):
    pq.write_table(pa.table({"text": ["words"] * len(values), column: pa.array(values, kind)}), HERE / f"{name}.parquet")


write("pairs",
      [{"chosen": chat(i, f"good {i}"), "rejected": chat(i, f"bad {i}"), "margin": None if i % 4 == 0 else i / 8}
       for i in range(24)],
      [("chosen", pa.list_(MESSAGE)), ("rejected", pa.list_(MESSAGE)), ("margin", pa.float32())],
      compression="snappy", row_group_size=7)
write("chats",
      [{"messages": chat(i, f"answer {ODD[i % len(ODD)]}") * (1 + i % 3), "source": ["web", "book"][i % 2]}
       for i in range(12)],
      [("messages", pa.large_list(MESSAGE)), ("source", pa.dictionary(pa.int8(), pa.string()))],
      compression="zstd", row_group_size=5, data_page_version="2.0")
write("verdicts",
      [{"prompt": ["short", "long, as many have it"][i % 2], "completion": f"answer {i}", "label": i % 3 == 0}
       for i in range(10)],
      [("prompt", pa.dictionary(pa.int32(), pa.string())), ("completion", pa.large_string()), ("label", pa.bool_())],
      compression="gzip", data_page_size=64)
write("margins",
      [{"prompt": "p", "chosen": "c", "rejected": "r", "margin": margin} for margin in (0, 1, -3, 2**40)],
      [("prompt", pa.string()), ("chosen", pa.string()), ("rejected", pa.string()), ("margin", pa.int64())],
      compression="none", use_dictionary=False, column_encoding={"chosen": "DELTA_BYTE_ARRAY", "margin": "DELTA_BINARY_PACKED"})
# Row 2 has no answer and row 3 another's column alone: what is wrong is said by row.
write("faulty",
      [{"prompt": "p", "completion": "c"}, {"prompt": "p", "completion": "  "}, {"prompt": None, "completion": "c"},
       {"prompt": "q", "completion": "d"}],
      [("prompt", pa.string()), ("completion", pa.string())])
# Columns that nobody reads may be of any kind.
pq.write_table(pa.table({"text": ["one", "two"], "picture": pa.array([b"\x00\xff", None]),
                         "when": pa.array([datetime.datetime(2024, 1, 1)] * 2, pa.timestamp("us"))}),
               HERE / "others.parquet")
refused("binary", "prompt", [b"\xff"], pa.binary())
refused("timestamp", "label", [datetime.datetime(2024, 1, 1)], pa.timestamp("us"))
refused("decimal", "margin", [decimal.Decimal("1.5")], pa.decimal128(5, 2))
refused("map", "messages", [[("role", "user")]], pa.map_(pa.string(), pa.string()))
refused("nested", "messages", [[{"role": "user", "content": "w", "at": datetime.date(2024, 1, 1)}]],
        pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()), ("at", pa.date32())])))
