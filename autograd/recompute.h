// Less memory for a second forward pass: gradient checkpointing, Chen et al. 2016, arXiv:1604.06174.
#pragma once

#include <functional>

#include "autograd/tape.h"

namespace maki {

/// f(x). Inside a Recording, nothing that f computes is kept for the backward pass except x: when the pass arrives, f
/// is computed once more, its gradients are computed and delivered, and its memory is released. Values, gradients and
/// random numbers have the bits that f(x) has, as long as x has no other use that is recorded after this call or, if it
/// is a parameter, in f.
///
/// f is called again by backward(), so whatever it refers to must live until then, and it must compute the same. It may
/// use parameters; an op of f throws Error for any other tensor that was recorded outside of f, unless it is detached.
/// Its output must be computed from x or from parameters, or backward() throws Error, and must not be x itself. Outside
/// a Recording, and if x requires no gradient, this is f(x): then what f computes is kept. The observer of the tape
/// sees one op called `recompute`; Tape::inspect() also searches and names the ops inside f.
Tensor recompute(const Tensor& x, const std::function<Tensor(const Tensor& x)>& f);

}  // namespace maki
