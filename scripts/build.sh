# Sourced by demo.sh and install.sh, in the root of the sources: builds the program, after installing what that needs,
# and sets `build` to the folder of the build. MAKI_BUILD names a finished build to use instead.
build=${MAKI_BUILD:-}
if [ -z "$build" ]; then
  build=build/program
  bash scripts/setup.sh
  cmake --preset release --log-level=WARNING -DMAKI_BUILD_TESTS=OFF -DMAKI_BUILD_EXAMPLES=OFF -B "$build"
  cmake --build "$build" --target maki -- --quiet
fi
