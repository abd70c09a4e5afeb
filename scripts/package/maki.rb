# A formula of Homebrew. Not tested: there was no macOS at hand.
#
#   brew install --HEAD scripts/package/maki.rb
class Maki < Formula
  desc "Train Transformer language models on a CPU, from a text file"
  homepage "https://maki.invalid"
  license "MIT"
  head "https://maki.invalid/maki.git", branch: "main"

  depends_on "cereal" => :build
  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "pkgconf" => :build
  depends_on "fmt"
  depends_on "highway"
  depends_on "libmicrohttpd"
  depends_on "libomp"
  depends_on "pcre2"
  depends_on "tomlplusplus"
  depends_on "utf8proc"
  depends_on "xxhash"

  def install
    system "cmake", "--preset", "release", "-B", "build", "-DMAKI_BUILD_TESTS=OFF", "-DMAKI_BUILD_EXAMPLES=OFF",
           "-DCMAKE_UNITY_BUILD=ON", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    (testpath/"text.txt").write("the maki reel unrolls slowly and a tape keeps every step\n" * 40)
    system bin/"maki", "train", "text.txt", "-n", "5", "-o", "run"
    assert_path_exists testpath/"run/checkpoints"
  end
end
