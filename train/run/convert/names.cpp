#include "train/run/convert/names.h"

#include <fmt/format.h>
#include <string_view>

namespace maki {
namespace {

constexpr NameRule kGpt2[] = {
    {.parameter = "wte.weight", .stored = "transformer.wte.weight", .by_token = true},
    {"wpe.weight", "transformer.wpe.weight"},
    {"h.{}.ln_1.weight", "transformer.h.{}.ln_1.weight"},
    {"h.{}.ln_1.bias", "transformer.h.{}.ln_1.bias"},
    {"h.{}.attn.c_attn.weight", "transformer.h.{}.attn.c_attn.weight", Form::transposed},
    {"h.{}.attn.c_attn.bias", "transformer.h.{}.attn.c_attn.bias"},
    {"h.{}.attn.c_proj.weight", "transformer.h.{}.attn.c_proj.weight", Form::transposed},
    {"h.{}.attn.c_proj.bias", "transformer.h.{}.attn.c_proj.bias"},
    {"h.{}.ln_2.weight", "transformer.h.{}.ln_2.weight"},
    {"h.{}.ln_2.bias", "transformer.h.{}.ln_2.bias"},
    {"h.{}.mlp.c_fc.weight", "transformer.h.{}.mlp.c_fc.weight", Form::transposed},
    {"h.{}.mlp.c_fc.bias", "transformer.h.{}.mlp.c_fc.bias"},
    {"h.{}.mlp.c_proj.weight", "transformer.h.{}.mlp.c_proj.weight", Form::transposed},
    {"h.{}.mlp.c_proj.bias", "transformer.h.{}.mlp.c_proj.bias"},
    {"ln_f.weight", "transformer.ln_f.weight"},
    {"ln_f.bias", "transformer.ln_f.bias"},
    {.parameter = "lm_head.weight", .stored = "lm_head.weight", .by_token = true},
};

// q‖k‖v and gate‖up are one parameter each in maki. Both rotate the halves of a head, so no rows change places.
constexpr NameRule kLlama[] = {
    {.parameter = "wte.weight", .stored = "model.embed_tokens.weight", .by_token = true},
    {"h.{}.ln_1.weight", "model.layers.{}.input_layernorm.weight"},
    {"h.{}.attn.c_attn.weight", "model.layers.{}.self_attn.q_proj.weight", Form::same, 0, 3},
    {"h.{}.attn.c_attn.weight", "model.layers.{}.self_attn.k_proj.weight", Form::same, 1, 3},
    {"h.{}.attn.c_attn.weight", "model.layers.{}.self_attn.v_proj.weight", Form::same, 2, 3},
    {"h.{}.attn.c_attn.bias", "model.layers.{}.self_attn.q_proj.bias", Form::same, 0, 3},
    {"h.{}.attn.c_attn.bias", "model.layers.{}.self_attn.k_proj.bias", Form::same, 1, 3},
    {"h.{}.attn.c_attn.bias", "model.layers.{}.self_attn.v_proj.bias", Form::same, 2, 3},
    {"h.{}.attn.c_proj.weight", "model.layers.{}.self_attn.o_proj.weight"},
    {"h.{}.attn.c_proj.bias", "model.layers.{}.self_attn.o_proj.bias"},
    {"h.{}.ln_2.weight", "model.layers.{}.post_attention_layernorm.weight"},
    {"h.{}.mlp.c_fc.weight", "model.layers.{}.mlp.gate_proj.weight", Form::same, 0, 2},
    {"h.{}.mlp.c_fc.weight", "model.layers.{}.mlp.up_proj.weight", Form::same, 1, 2},
    {"h.{}.mlp.c_fc.bias", "model.layers.{}.mlp.gate_proj.bias", Form::same, 0, 2},
    {"h.{}.mlp.c_fc.bias", "model.layers.{}.mlp.up_proj.bias", Form::same, 1, 2},
    {"h.{}.mlp.c_proj.weight", "model.layers.{}.mlp.down_proj.weight"},
    {"h.{}.mlp.c_proj.bias", "model.layers.{}.mlp.down_proj.bias"},
    {"ln_f.weight", "model.norm.weight"},
    {.parameter = "lm_head.weight", .stored = "lm_head.weight", .by_token = true},
};

constexpr NameRule kLlmC[] = {
    {.parameter = "wte.weight", .stored = "wte.weight", .by_token = true},
    {"wpe.weight", "wpe.weight"},
    {"h.{}.ln_1.weight", "h.{}.ln_1.weight"},
    {"h.{}.ln_1.bias", "h.{}.ln_1.bias"},
    {"h.{}.attn.c_attn.weight", "h.{}.attn.c_attn.weight"},
    {"h.{}.attn.c_attn.bias", "h.{}.attn.c_attn.bias"},
    {"h.{}.attn.c_proj.weight", "h.{}.attn.c_proj.weight"},
    {"h.{}.attn.c_proj.bias", "h.{}.attn.c_proj.bias"},
    {"h.{}.ln_2.weight", "h.{}.ln_2.weight"},
    {"h.{}.ln_2.bias", "h.{}.ln_2.bias"},
    {"h.{}.mlp.c_fc.weight", "h.{}.mlp.c_fc.weight"},
    {"h.{}.mlp.c_fc.bias", "h.{}.mlp.c_fc.bias"},
    {"h.{}.mlp.c_proj.weight", "h.{}.mlp.c_proj.weight"},
    {"h.{}.mlp.c_proj.bias", "h.{}.mlp.c_proj.bias"},
    {"ln_f.weight", "ln_f.weight"},
    {"ln_f.bias", "ln_f.bias"},
};

constexpr NameRule kGgufGpt2[] = {
    {"wte.weight", "token_embd.weight"},
    {"wpe.weight", "position_embd.weight"},
    {"h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    {"h.{}.ln_1.bias", "blk.{}.attn_norm.bias"},
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight"},
    {"h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias"},
    {"h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight"},
    {"h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    {"h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    {"h.{}.ln_2.bias", "blk.{}.ffn_norm.bias"},
    {"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight"},
    {"h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias"},
    {"h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
    {"h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
    {"ln_f.weight", "output_norm.weight"},
    {"ln_f.bias", "output_norm.bias"},
    {"lm_head.weight", "output.weight"},
};

// llama.cpp rotates neighbouring rows of a Llama, so those of queries and keys change places.
constexpr NameRule kGgufLlama[] = {
    {"wte.weight", "token_embd.weight"},
    {"h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_q.weight", Form::rotary_pairs, 0, 3},
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_k.weight", Form::rotary_pairs, 1, 3},
    {"h.{}.attn.c_attn.weight", "blk.{}.attn_v.weight", Form::same, 2, 3},
    {"h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight"},
    {"h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    {"h.{}.mlp.c_fc.weight", "blk.{}.ffn_gate.weight", Form::same, 0, 2},
    {"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", Form::same, 1, 2},
    {"h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
    {"ln_f.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};

bool is_per_block(const NameRule& rule) {
  return std::string_view(rule.parameter).find("{}") != std::string_view::npos;
}

NamePair pair_of(const NameRule& rule, std::int64_t block, int share) {
  constexpr int kQkv = 3;  // parts of a packed parameter q‖k‖v
  NamePair pair{fmt::format(fmt::runtime(rule.parameter), block),
                fmt::format(fmt::runtime(rule.stored), block),
                rule.form,
                rule.part,
                rule.parts,
                rule.by_token};
  if (rule.parts != kQkv) return pair;
  pair.parts = share + 2;
  pair.part = rule.part == 0 ? 0 : share + rule.part - 1;
  pair.count = rule.part == 0 ? share : 1;
  return pair;
}

}  // namespace

std::vector<NamePair> expand(std::span<const NameRule> rules, std::int64_t n_layer, std::int64_t heads_per_kv_head) {
  std::vector<NamePair> pairs;
  for (const NameRule& rule : rules) {
    const std::int64_t blocks = is_per_block(rule) ? n_layer : 1;
    for (std::int64_t i = 0; i < blocks; ++i) pairs.push_back(pair_of(rule, i, static_cast<int>(heads_per_kv_head)));
  }
  return pairs;
}

std::span<const NameRule> gpt2_names() { return kGpt2; }
std::span<const NameRule> llama_names() { return kLlama; }
std::span<const NameRule> llm_c_names() { return kLlmC; }
std::span<const NameRule> gguf_gpt2_names() { return kGgufGpt2; }
std::span<const NameRule> gguf_llama_names() { return kGgufLlama; }

}  // namespace maki
