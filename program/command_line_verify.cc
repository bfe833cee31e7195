// weft verify: recordings of other programs, and damaged files.
#include "program/command_line.h"
#include "program/commands.h"

namespace weft {

void CommandLine::AddVerification(int64_t (*allocations)()) {
  auto* verify = Command("verify", "compare with recorded reference data");
  verify->require_subcommand(1);

  const auto recorded = std::make_shared<VerifyOptions>();
  recorded->allocations = allocations;
  auto* command = Command("environment", "check an environment, or replay its recording", verify);
  command->add_option("id", recorded->id, "such as HalfCheetah-v5, python:MODULE:NAME, TASK.yaml");
  command->add_option("file", recorded->file,
                      "its recording, a .safetensors file; without: the contract is checked");
  command->add_flag("--all", recorded->all, "every recording of a folder");
  command->add_option("--reference", recorded->reference, "the folder, with --all");
  Call(command, recorded, weft::VerifyEnvironment);

  const auto tokenizer = std::make_shared<VerifyTextOptions>();
  command =
      Command("tokenizer", "compare ids, offsets and decoded text with recorded ones", verify);
  command->add_option("path", tokenizer->path, "name, folder or file")->required();
  command->add_option("reference", tokenizer->reference,
                      "folder with cases.jsonl and decode_cases.jsonl, or such a file");
  Call(command, tokenizer, weft::VerifyTokenizerFile);

  const auto chat_template = std::make_shared<VerifyTextOptions>();
  command = Command("template", "compare rendered conversations with recorded ones", verify);
  command->add_option("path", chat_template->path, "name, folder or file")->required();
  command->add_option("reference", chat_template->reference,
                      "expected.json; default: PATH holds templates and their results");
  Call(command, chat_template, weft::VerifyTemplateFile);

  const auto model = std::make_shared<VerifyLanguageOptions>();
  command = Command("model", "a language model against its recording", verify);
  command->add_option("model", model->model, "folder or .gguf file")->required();
  command->add_option("expected", model->expected,
                      "recording; default: expected.safetensors beside it");
  Call(command, model, weft::VerifyLanguage);

  const auto encoder = std::make_shared<VerifyTextOptions>();
  command = Command("encoder", "the embeddings of a text encoder against recorded ones", verify);
  command->add_option("model", encoder->path, "name or folder")->required();
  command->add_option("reference", encoder->reference, "JSON file of texts and embeddings")
      ->required();
  Call(command, encoder, weft::VerifyEncoderFile);

  const auto language = std::make_shared<VerifyLanguageOptions>();
  command = Command("language", "every recording of language models", verify);
  command->add_option("--reference", language->reference, "the folder")->required();
  Call(command, language, weft::VerifyLanguage);

  const auto hostile = std::make_shared<VerifyOptions>();
  command = Command("hostile",
                    "load damaged files in a child process and see that they are refused", verify);
  command->add_option("--reference", hostile->reference, "folder with the files and manifest.json")
      ->required();
  Call(command, hostile, weft::VerifyHostile);
}

}  // namespace weft
