#include "train/app/draw/words.h"

#include "autograd/core/table.h"

namespace maki {
namespace {

constexpr Words kLanguages[] = {
    {
        .name = "en",
        .attention_weights = "Attention weights",
        .layer_and_head = "layer {}, head {}",
        .query = "query: token that attends",
        .query_written = "query: token being written",
        .key = "key: token attended to",
        .weight = "weight",
        .step_of_run = "{}, step {}",
        .self_attention = "self-attention",
        .of_encoder = "self-attention of the encoder",
        .of_decoder = "self-attention of the decoder",
        .cross_attention = "attention of the decoder to the encoder's output",
        .none_to_later = "; no token attends to later ones",
        .description_of_weights = "Heat maps of attention weights (layers: {}, heads: {}): the rows are queries "
                                  "(tokens: {}), the columns keys (tokens: {}).",
        .sinusoidal_positions = "Sinusoidal positions",
        .encoding = "encoding: row i is the vector p_i",
        .dot_products = "dot products p_i · p_j",
        .position_i = "position i",
        .position_j = "position j",
        .column = "column",
        .summary_of_positions = "base {:g}, width {}, {} positions",
        .description_of_positions = "Heat maps of the sinusoidal position encoding and of its dot products, and a plot "
                                    "of its wavelengths: {}.",
        .wavelength_of_pair = "wavelength of columns 2i and 2i+1",
        .pair = "pair of columns i",
        .wavelength_axis = "wavelength (positions)",
        .wavelengths = "wavelengths, in positions",
        .two_columns = "columns {:>4} and {:>4}",
        .one_column = "column  {:>4}",
        .shows_first = "a cell shows the first of {}; rows and columns have numbers",
        .shows_largest = "a cell shows the largest of {}; rows and columns have numbers",
        .block_of_numbers = "{} x {} numbers",
        .rows = "{} rows",
        .below = "below {:.2g}",
        .up_to = "up to {:.2g}",
    },
    {
        .name = "ja",
        .attention_weights = "注意の重み",
        .layer_and_head = "層 {}、ヘッド {}",
        .query = "クエリ：注意を向けるトークン",
        .query_written = "クエリ：これから書くトークン",
        .key = "キー：注意を向けられるトークン",
        .weight = "重み",
        .step_of_run = "{}、{} ステップ",
        .self_attention = "自己注意",
        .of_encoder = "エンコーダの自己注意",
        .of_decoder = "デコーダの自己注意",
        .cross_attention = "デコーダからエンコーダの出力への交差注意",
        .none_to_later = "（後のトークンには注意を向けない）",
        .description_of_weights = "注意の重みのヒートマップ（層の数 {}、ヘッドの数 {}）。行はクエリ（トークン数 {}）、"
                                  "列はキー（トークン数 {}）。",
        .sinusoidal_positions = "正弦波による位置符号化",
        .encoding = "位置符号化：行 i がベクトル p_i",
        .dot_products = "内積 p_i · p_j",
        .position_i = "位置 i",
        .position_j = "位置 j",
        .column = "列",
        .summary_of_positions = "底 {:g}、幅 {}、位置の数 {}",
        .description_of_positions = "正弦波による位置符号化とその内積のヒートマップ、波長のグラフ（{}）。",
        .wavelength_of_pair = "列 2i と 2i+1 の波長",
        .pair = "列の組 i",
        .wavelength_axis = "波長（位置の数）",
        .wavelengths = "波長（位置の数）",
        .two_columns = "列 {:>4} と {:>4}",
        .one_column = "列 {:>4}",
        .shows_first = "1 マスは {}のうち最初の値。行と列には番号を付けた",
        .shows_largest = "1 マスは {}のうち最大の値。行と列には番号を付けた",
        .block_of_numbers = "{} × {} 個",
        .rows = "{} 行",
        .below = "{:.2g} 未満",
        .up_to = "{:.2g} 以下",
    }};
constexpr Table kWords("lang", kLanguages);

}  // namespace

std::vector<std::string> languages() { return kWords.names(); }

const Words& words_in(const std::string& language) { return kWords.row(language); }

}  // namespace maki
