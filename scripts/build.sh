# Sourced by demo.sh and install.sh in the root of the source tree. Installs missing packages, builds the maki program and
# sets `build` to the build directory. If MAKI_BUILD is set, uses that finished build instead.
build=${MAKI_BUILD:-}
if [ -z "$build" ]; then
  build=build/program
  bash scripts/setup.sh
  cmake --preset release --log-level=WARNING -DMAKI_BUILD_TESTS=OFF -DMAKI_BUILD_EXAMPLES=OFF -B "$build"
  cmake --build "$build" --target maki -- --quiet
fi
