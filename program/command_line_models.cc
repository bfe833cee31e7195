// Commands that read and write the files of language models, and their data.
#include "program/command_line.h"
#include "program/commands.h"

namespace weft {

void CommandLine::AddModelFiles() {
  const auto convert = std::make_shared<ConvertOptions>();
  auto* command = Command("convert", "write a language model as a Hugging Face folder or as GGUF");
  command->add_option("from", convert->from, "folder, .gguf file or name of a model")->required();
  command->add_option("to", convert->to, ".gguf file, or folder to make")->required();
  command->add_option("--type", convert->type,
                      "of the weights: f32, f16, bf16 and, for GGUF, q8_0, q4_0, q4_1, q5_0, q5_1; "
                      "default: as they are");
  command->add_option("--adapter", convert->adapter,
                      "folder of a LoRA adapter in PEFT's format, added to the weights");
  Call(command, convert, weft::Convert);

  const auto tokenize = std::make_shared<TokenizeOptions>();
  command = Command("tokenize", "show the tokens of a text, or learn a vocabulary from texts");
  command->add_option("model", tokenize->model, "name, folder, tokenizer.json or .gguf file");
  command->add_option("text", tokenize->text, "the text; default: standard input");
  command->add_option("--file", tokenize->file, "a file with the text");
  command->add_flag("--special", tokenize->special, "with the tokens put around a text, as BOS");
  command->add_flag("--plain", tokenize->plain, "read control tokens in the text as plain text");
  command->add_flag("--ids", tokenize->ids, "only the ids, on one line");
  command->add_flag("--pieces", tokenize->pieces, "only the tokens as the vocabulary spells them");
  auto* learn = command->add_option_group("learning", "a byte-level BPE from texts");
  auto* train = learn->add_option("--train", tokenize->train, "files of text to learn from");
  learn->add_option("--vocabulary", tokenize->vocabulary, "tokens at most; default: 32000")
      ->needs(train)
      ->check(CLI::Range(256, 1 << 24));
  learn
      ->add_option("--pre", tokenize->pre,
                   "how text is cut into words: gpt-2 (default), qwen2, ...")
      ->needs(train);
  learn->add_option("--special-token", tokenize->specials, "a control token; may be repeated")
      ->needs(train);
  learn->add_option("--output,-o", tokenize->output, "folder to make")->needs(train);
  train->needs("--output");
  Call(command, tokenize, weft::Tokenize);

  auto* data = Command("data", "look at a file of data as a model will see it");
  data->require_subcommand(1);
  const auto inspect = std::make_shared<InspectDataOptions>();
  command = Command(
      "inspect", "show rows with what is learnt marked, and count rows, tokens and faults", data);
  command->add_option("file", inspect->file, "JSONL file")->required();
  command->add_option("--model", inspect->model, "name, folder or .gguf file")->required();
  command->add_option("--rows", inspect->rows, "to show; default: 3")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--learn", inspect->learn, "what is learnt of chats: answers (default) or all")
      ->check(CLI::IsMember({"answers", "all"}));
  Call(command, inspect, weft::InspectData);
}

}  // namespace weft
