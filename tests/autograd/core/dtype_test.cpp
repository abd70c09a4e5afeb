// Element types and their names.
#include "autograd/core/dtype.h"

#include "tests/catch.h"

using namespace maki;

TEST_CASE("every element type is found by its name, and other names are rejected") {
  for (const DType dtype : {DType::float32, DType::float64, DType::int32})
    REQUIRE(dtype_named(to_string(dtype)) == dtype);
  for (const char* name : {"", "float", "float16", "Float32", "float32 "})
    REQUIRE_THROWS_WITH(dtype_named(name), ContainsSubstring("must be float32, float64 or int32; got "));
}
