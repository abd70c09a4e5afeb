// How the rows of ParamGroup::rows are updated: Adagrad with one accumulator per row.
//
//   h_r ← h_r + mean(g_r²);   table_r ← table_r − learning_rate · g_r / (√h_r + eps)
//
// for the rows r that have a gradient g_r in the step, already multiplied by grad_scale. Duchi, Hazan and Singer 2011
// (JMLR 12); one number per row as in Naumov et al. 2019, arXiv:1906.00091. The others do not change, and nothing about
// them has to be remembered: a rule whose moments decay would have to make up for the steps in which a row was not
// used. A row that is used rarely gets large steps, one that is used often gets small ones, which is what tables of
// n-grams need. There is no weight decay, because a row that is not used anymore cannot decay without being touched.
#pragma once

#include "optim/optimizer.h"

namespace maki {

/// The name of h in moments and checkpoints.
inline constexpr const char* kRowSquares = "row_squares";
inline constexpr double kRowSquareEps = 1e-10;  ///< eps, as in PyTorch's Adagrad

/// h, one number per row of the table.
std::vector<MomentSpec> row_moments_of(const Parameter& table);

struct RowStep {
  double learning_rate = 0, grad_scale = 1;
};
/// Updates the rows of the table [R, C], and of squares [R], that have a gradient. No bit depends on the number of
/// threads.
void update_rows_of(const RowGradient& gradient, const RowStep& step, Tensor& table, Tensor& squares);

}  // namespace maki
