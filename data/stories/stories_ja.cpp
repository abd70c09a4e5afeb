// The Japanese stories, in the notation of data/stories/grammar.h: sixteen plots in です・ます, not a translation. As in the
// English ones (data/stories/stories_en.cpp), what is introduced early comes back later, a riddle or a trouble has its one
// fitting answer, and every alternative differs from its siblings before either ends.
#include "data/stories/stories_text.h"

namespace maki {

const std::string_view kStoriesJapanese = R"(
[story]
{opening}{habit}{sight}
  {plot}

[opening]
むかしむかし、{home}に、{trait}{newcomer}がすんでいました。
むかし、{longago}ころのお話です。{home}に、{trait}{newcomer}がくらしていました。
これは、{home}にすんでいた{trait}{newcomer}のお話です。
みなさんは、{trait}{newcomer}を知っていますか。家は{home}にありました。
遠い国の{home}に、{trait}{newcomer}がいました。
{home}に、{trait}{newcomer}が、{family}といっしょにくらしていました。
{longago}ころ、{home}に、{newcomer}がいました。それは{trait}子でした。

[newcomer]
{hero=child.intro}
{beast}の{hero=child.name}

[child: name intro]
花子 | 小春 | 千代 | 美咲 | 松子 | 雪子 | 夏美 | 月子 | 陽子 | 七海 | 葉月 | 文子 | さくら | みどり | ひかり | すみれ | あおい | かえで / 女の子の@
ほたる | なぎさ | 桃子 | 菊江 | 絹代 | 糸子 | 鈴音 | 若菜 / 女の子の@
太郎 | 健太 | 一平 | 竹夫 | 梅吉 | 春樹 | 秋人 | 冬馬 | 星也 | 光一 | 海斗 | 空太 | 良平 | 正太 | 次郎 | 三郎 | 五郎 | 勇気 | 大地 / 男の子の@
つくし | 力丸 | 金太 | 風太 | 岩男 | 森一 | 弥助 / 男の子の@

[nick]
コンタ | ポンキチ | ミミ | ゴロ | クルミ | タマ | シロ | モコ | キキ | ハチ | トト | ピピ | ブン | ノロ | チビ | ガン太 | ドン | スズ | メメ | ヨモギ
アンズ | ウメ | カン助 | ケロ | サブ | セン | ソラ | ヌー | ネネ | フク | ヘイ | マル | ムク | ラン | リク | ルル | レン | ロク | ワカ | ニコ

[beast]
きつね | たぬき | うさぎ | くま | りす | ねこ | いぬ | さる | しか | いのしし | ねずみ | もぐら | かえる | かめ | からす | すずめ | つばめ
ふくろう | にわとり | あひる | やぎ | ひつじ | うま | うし | ろば | こぶた | かわうそ | はりねずみ | いたち | むささび | つる | はと | とんび
かたつむり | ちょう | あなぐま | こうもり | おおかみ | かもしか | やまね | きじ

[family]
おばあさん | おじいさん | お母さん | お父さん | 兄さん | 姉さん | 弟 | 妹 | {n}匹の{small} | おばさん | いとこ

[trait]
やさしい | 元気な | 正直な | 働き者の | 食いしんぼうの | はずかしがりやの | 陽気な | 物知りの | 力持ちの | のんびり屋の | いたずら好きな
泣き虫の | 勇気のある | おしゃべりな | 無口な | 親切な | 気の弱い | 心の広い | 負けずぎらいの | 早起きの | ねぼすけの | 歌の好きな
絵の上手な | 足の速い | 目のいい | 頭のいい | まじめな | 気まぐれな | おとなしい | 明るい | がんこな | 忘れんぼうの | きれい好きな
さびしがりやの | あわてんぼうの | こわがりの | 笑い上戸の | 手先の器用な | 耳のいい | 礼儀正しい

[longago]
まだ月に道があった | 山が歌をうたっていた | 動物が人の言葉を話した | 時計というものがなかった | 願いごとがよくかなった | 星が庭に落ちてきた
川の水があまかった | 海に橋がかかっていた | お城に竜がすんでいた | 電気のなかった

[home]
{village}の{home_spot} | 山のふもと | 海の見える丘 | 森のおく | 川のそば | 高い{tree}の下 | 橋の向こう | {place}のとなり | 竹やぶのうら
北の島 | 南の島 | お寺の門の前 | 坂の上 | {village}と{village}の間 | {flower}のさく谷 | {trade}のとなり

[home_spot]
はずれ | 真ん中 | 南のはし | 一本道の終わり | 小高い丘 | 神社のうら | 橋のそば | 池のほとり | 竹林の中 | 四つ角 | 西の門の外

[village]
{name_first}{name_last}村 | {name_first}{name_last}町

[name_first]
竹 | 松 | 梅 | 桜 | 藤 | 桐 | 菊 | 石 | 岩 | 白 | 黒 | 赤 | 青 | 金 | 銀 | 水 | 風 | 雪 | 月 | 星 | 朝 | 夕 | 東 | 西 | 上 | 下 | 中 | 高 | 長 | 深
浅 | 古 | 新 | 若 | 花 | 草 | 鶴 | 亀

[name_last]
川 | 原 | 山 | 田 | 野 | 沢 | 谷 | 崎 | 島 | 浜 | 里 | 坂 | 橋 | 池 | 森 | 林 | 峰 | 瀬 | 井 | 宮

[surname]
{name_first}{surname_last}

[surname_last]
本 | 村 | 口 | 木 | 井 | 尾 | 岡 | 部 | 倉 | 越 | 塚 | 屋 | 川 | 田 | 山 | 野 | 沢 | 原

[tree]
松の木 | 杉の木 | 桜の木 | 柿の木 | 栗の木 | 梅の木 | 柳の木 | もみじの木 | いちょうの木 | くすの木 | けやきの木 | 竹

[flower]
桜 | 梅 | 菊 | 藤 | 椿 | 牡丹 | すみれ | たんぽぽ | れんげ | 矢車草 | あじさい | 朝顔 | ひまわり | 百合 | 桔梗 | 萩 | れんぎょう | 水仙 | 福寿草
つつじ | しゃくやく | 沈丁花 | 金木犀 | りんどう | なでしこ | コスモス | 月見草 | 山吹 | 桃

[place]
川原 | 海辺 | 山道 | 市場 | 神社 | お寺 | 図書館 | 駅 | 港 | 畑 | 田んぼ | 竹やぶ | 森 | 原っぱ | 丘 | 池 | 峠 | 滝 | 温泉 | 広場 | 水車小屋
茶店 | 果樹園 | 牧場 | 灯台 | 洞くつ | 土手 | 砂浜 | 湖 | 谷川 | 学校 | 城あと | 渡し場 | 林

[trade]
大工さん | 漁師さん | 魚屋さん | 八百屋さん | パン屋さん | 豆腐屋さん | 花屋さん | 床屋さん | 郵便屋さん | 駅長さん | 校長先生 | お医者さん
船頭さん | 猟師さん | 鍛冶屋さん | 染物屋さん | 時計屋さん | 本屋さん | 米屋さん | 茶摘みさん | 仕立屋さん | 紙すきさん | 笛ふきさん
絵かきさん | 薬屋さん | 菓子屋さん | 酒屋さん | 炭焼きさん | 灯台守さん | 庭師さん | 馬車屋さん | 油屋さん | 村長さん | 和尚さん | 機織りさん
石屋さん | 瓦職人さん | 植木屋さん | 旅芸人さん | 飛脚さん

[who]
{trait}{trade}
{surname}さん
{village}の{trade}

[elder: noun]
おばあさん | おじいさん | お母さん | お父さん | 先生 | 姉さん | 兄さん | おばさん | おじさん | 村長さん

[giver]
おばあさん | おじいさん | お母さん | お父さん | 旅の{trade} | {who} | {trait}{beast}

[n]
三 | 四 | 五 | 六 | 七 | 八 | 九 | 十 | 二十 | 百

[count]
三つ | 四つ | 五つ | 六つ | 七つ | 八つ | 九つ | いくつか | たくさん

[tsu]
三つ | 四つ | 五つ | 六つ | 七つ | 八つ | 九つ

[weeks]
三 | 四 | 五 | 六 | 七 | 八

[people]
二人 | 三人 | 四人 | 五人 | 七人 | 十人

[days]
三日 | 四日 | 五日 | 六日 | 七日 | 八日 | 十日 | 二十日

[times]
三回 | 四回 | 五回 | 七回 | 十回 | 二十回 | 百回

[small]
りす | ねずみ | かえる | うさぎ | こねこ | こいぬ | たぬき | きつね | もぐら | とかげ | とんぼ | ほたる | こおろぎ | せみ | さわがに | やもり | あり

[bird]
すずめ | つばめ | からす | はと | とんび | つる | 白さぎ | かもめ | あひる | うぐいす | ふくろう | ひばり | きじ | がん | にわとり

[flock]
{n}匹の{small}
{n}羽の{bird}

[colour]
赤い | 青い | 白い | 黒い | 黄色い | 緑の | 金色の | 銀色の | 茶色い | 桃色の | むらさきの | 水色の | 空色の | 朱色の | 藍色の | 灰色の
うす緑の | こげ茶の | 若草色の | さくら色の | にじ色の

[size]
小さな | 大きな | 丸い | 四角い | 長い | 細い | 太い | 平たい | 古い | 新しい | 美しい | ふしぎな | ぴかぴかの | すべすべした | 重い | 軽い
かわいい | 立派な | 粗末な | めずらしい | すてきな | きれいな | やわらかい | かたい | でこぼこの | ひびの入った | 使いこんだ | 手作りの
木彫りの | 竹細工の | 漆ぬりの | 上等な | おかしな | かざりのついた | ほこりだらけの

[object]
笛 | 太鼓 | 鈴 | こま | たこ | 手鏡 | かさ | ぼうし | 手ぶくろ | 手ぬぐい | 風車 | 人形 | お守り | 巾着 | 小刀 | 筆 | すずり | 絵本 | 地図 | 時計
ちょうちん | ろうそく | 茶わん | 湯のみ | さじ | はし箱 | かご | 水筒 | 弁当箱 | 下駄 | 足袋 | 帯 | くし | かんざし | 指輪 | かぎ | 望遠鏡 | 虫めがね
磁石 | ハーモニカ | 三味線 | 竹とんぼ | お手玉 | めんこ | けん玉 | 折り鶴 | うちわ | 扇子 | ふろしき | 手紙 | 財布 | ノート | 鉛筆 | 絵の具 | 色紙
日記帳 | オルゴール | ラッパ | お面 | 急須 | 花びん | そろばん | 万年筆 | 首かざり | 写真 | 切手帳

[bit]
石 | 貝がら | ガラス玉 | 鈴 | ボタン | ビー玉 | 木の実 | 小箱 | つぼ | 風船 | 巾着 | お手玉 | だるま | 茶わん | 小石 | かけら | 飴玉 | 糸玉

[food]
{flavour}の{dish}

[flavour]
栗 | 豆 | いも | かぼちゃ | 大根 | きのこ | たけのこ | 山菜 | ごま | くるみ | よもぎ | 柚子 | 梅 | 鮭 | あさり | れんこん | ごぼう | にんじん | かぶ
味噌 | しょうが | 菜の花 | 枝豆 | とうもろこし | りんご | みかん | 桃 | 柿 | いちご | 梨 | ぶどう | 卵 | ねぎ | 小豆 | わかめ | 白菜

[dish]
ごはん | 団子 | もち | まんじゅう | 煮物 | 汁 | 天ぷら | おにぎり | うどん | そば | 雑炊 | おやき | 飴 | せんべい | 佃煮 | 漬物 | おひたし | ようかん
大福 | カステラ | パン | 鍋 | おかゆ | 寒天 | 酢の物 | ちまき

[garment]
着物 | はんてん | 前かけ | 羽織 | えりまき | 上着 | 浴衣 | はかま | 頭巾 | 陣羽織 | かっぱ

[season]
春 | 夏 | 秋 | 冬

[daypart]
朝 | 昼下がり | 夕方 | 日

[part]
朝 | 昼下がり | 夕方

[month]
一月 | 二月 | 三月 | 四月 | 五月 | 六月 | 七月 | 八月 | 九月 | 十月 | 十一月 | 十二月

[weekday]
月曜日 | 火曜日 | 水曜日 | 木曜日 | 金曜日 | 土曜日 | 日曜日

[day_early]
月曜日 | 火曜日 | 水曜日

[day_late]
木曜日 | 金曜日 | 土曜日 | 日曜日

[feast]
夏祭り | お正月 | お月見 | ひな祭り | 七夕 | 運動会 | お花見 | 大みそか | 田植え | 稲刈り | 節分 | 灯ろう流し | 十五夜 | 冬至

[time]
ある{season}の{daypart}
{month}の初めの{part}
{month}の終わりの{part}
{weekday}の{part}
{flower}の花がさくころ
{feast}の前の日
{feast}の次の日
雨上がりの{daypart}
雪のちらつく{daypart}
風の強い{daypart}
よく晴れた{daypart}
きりの深い{daypart}
ひさしぶりにあたたかい{daypart}

[habit]
{hero}は{hobby}のが大好きでした。
毎{mai}、{hero}は{place}へ行って{place_act}。
{hero}のふところには、いつも{size}{object}と{count}の{colour}{bit}が入っていました。
好きな食べ物は{food}で、きらいな食べ物は{food}でした。
大きくなったら{trade}になりたいと、{hero}はいつも言っていました。
{colour}{garment}を見ると、村の人にはすぐに{hero}だとわかりました。
{hero}には{sibling}が{people}いて、家はいつもにぎやかでした。
{day_early}には{who}の手伝いをし、{day_late}には{who}に{lesson}を習いました。
{hobby}ことなら、{hero}は{who}にも負けませんでした。

[mai]
朝 | 晩 | 日

[hobby]
歌をうたう | 絵をかく | 本を読む | 笛をふく | 星を数える | 虫をとる | 木に登る | 川で泳ぐ | 魚をつる | たこをあげる | なわとびをする
折り紙をおる | 竹馬に乗る | 字を書く | {flower}を育てる | 料理をする | 昔話を聞く | {bit}を集める | 貝をひろう | 雲をながめる | 相撲をとる
{music}を鳴らす | 水たまりに入る | 坂をころがる | 落ち葉をふむ | なぞなぞを作る | 雪だるまを作る | 船をながめる

[place_act]
魚をながめました | 歌をうたいました | 鳥の声を聞きました | {colour}{bit}をさがしました | {flower}をつみました | {who}とおしゃべりをしました
{music}の練習をしました | 絵をかきました | 雲の数を数えました | 水をくみました | ひるねをしました | お祈りをしました

[music]
笛 | 太鼓 | 三味線 | 琴 | 鈴 | ラッパ | 尺八 | 木琴 | ハーモニカ | 鐘

[sibling]
弟 | 妹 | 兄 | 姉 | いとこ

[lesson]
習字 | そろばん | 生け花 | {music} | 料理 | 踊り | 編み物 | 大工仕事 | 泳ぎ | 将棋

[said]
{how}言いました
つぶやきました
さけびました
ささやきました

[how]
大きな声で | 小さな声で | 笑って | 首をかしげて | 目を丸くして | うなずいて | 胸をはって | ため息をついて | にっこりして | 手をたたいて
早口で | ゆっくりと | やさしく | 元気よく | はずかしそうに | うれしそうに | 悲しそうに | 心配そうに | まじめな顔で | 頭をかいて
鼻をこすって | ひげをなでて | 空を見上げて | 地面を見つめて | 腕を組んで | こしに手を当てて | 立ち上がって | ふり向いて
息をはずませて | 指を立てて | そっと | きっぱりと | あわてて | 少し考えて

# けしき。どの話にも入ります。
[sight]
{colour}{garment}を着た{trait}{beast}が、{spot_out}で{busy}いました。
遠くで{flock}が{rested}いました。
風に乗って、{food}と{flower}のにおいがしてきました。
{who}が、{size}{object}をかかえて{walked}通りすぎました。
どこかで{who}が{music}を{how_long}鳴らしていました。
{village}の鐘が{tsu}鳴り、{flock}が{rested}いました。
{place}の入り口には、{size}{object}と{colour}{object}がかざってありました。
{who}が{size}{object}を買ったと、{village}ではうわさになっていました。
空には、{beast}の形をした{colour}雲がうかんでいました。
道ばたには{flower}の花が{bloom}さいていました。
「{weather_say}」と{who}が{how}言い、{food}を食べました。
{place}からは{music}の音が聞こえ、{trait}{beast}が{busy}いました。
軒下では{flock}が{rested}いました。

[busy]
本を読んで | 穴をほって | うとうとして | おどって | {colour}{bit}をさがして | {flavour}をほして | {garment}をぬって | {object}をみがいて
昔話をして | 手紙を書いて | あくびをして | {food}を食べて | {flower}に水をやって | 屋根を直して | 薪をわって | ひげをそって

[rested]
休んで | おどって | 歌って | ねむって | 話し合って | 追いかけっこをして | {flavour}をつついて | ならんで | 水をあびて | かくれんぼをして
空を見て | けんかをして

[walked]
いそいで | のんびり | よろよろと | 歌いながら | 口笛をふきながら | にこにこして | すたすたと | だまって

[how_long]
一日じゅう | 楽しそうに | しずかに | へたくそに | 夢中で | 朝から | かすかに | 上手に

[bloom]
いっせいに | ぽつんと | 見わたすかぎり | ちらほらと | こぼれるように | 風にゆれて

[weather_say]
明日は{sky}だろう | もうすぐ{sky}になるよ | 今年の{season}は早いね | {village}は{sky}だそうだ | いい{season}だねえ | {sky}の後には福が来る

[sky]
雨 | 雪 | 晴れ | くもり | 嵐 | きり | 大風 | 日照り | かみなり | みぞれ

[spot_in]
押し入れの中 | 座布団の下 | たんすの裏 | かまどの横 | 米びつの中 | 階段の下 | 屋根裏 | 縁側の下 | 本棚のすきま | 火鉢のそば | 台所のすみ
玄関の前 | ふとんの中 | 机の引き出し | なべの中 | 物置のおく

[spot_out]
井戸のそば | {tree}の根もと | 草むらの中 | 石垣の間 | 垣根の下 | 鳥小屋の裏 | 薪の山のかげ | 橋の下 | わら束の上 | 水車の横 | お地蔵さまの前
切り株の上 | 落ち葉の中 | {flower}の花のかげ | 竹林の中 | 川岸 | 屋根の上 | 畑の真ん中

[plot]
{lost}
{repair}
{broken}
{trip}
{storm}
{contest}
{secret}
{gift}
{skill}
{neighbour}
{night}
{seed}
{errand}
{bridge}
{thanks}
{festival}

# 落とし物。
[lost]
{lost_gift}{lost_joy}{sight}
  {lost_gone}{lost_cry}{lost_search}
  {lost_meet}{lost_found}
  {lost_thanks}{end_two}

[lost_gift]
{time}、{giver}が{hero}に{size}{hue=colour}{thing=object}をくれました。
{time}、{hero}は{place}の店で{size}{hue=colour}{thing=object}を買いました。
{time}、{hero}は{feast}のくじで、{size}{hue=colour}{thing=object}を当てました。
{time}、{hero}に包みがとどきました。開けてみると、{size}{hue=colour}{thing=object}が入っていました。

[lost_joy]
{hero}はうれしくて、{joy}。
「こんなにすてきな{thing}は見たことがない」と{hero}は{said}。
{hero}はそれを、おふろにも{place}にも持っていきました。
夜もまくらもとに置いて、{hero}は何度も{thing}をながめました。

[joy]
飛びはねました | 歌い出しました | くるくる回りました | 村じゅうに見せて歩きました | {food}を食べるのも忘れました | {times}も宙返りをしました
{who}に見せに行きました | {place}まで走っていきました | なみだが出てきました

[soon]
次の日 | その日の{evening} | {days}後 | {weekday}になって | まもなく | しばらくして

[evening]
夕方 | 昼すぎ | 帰り道 | 夜

[lost_gone]
ところが{soon}、{where=place}へ行くとちゅうで、{thing}がなくなってしまいました。
ところが{soon}、{where=place}でひるねをしているあいだに、{thing}が消えてしまいました。
ところが{soon}、{where=place}で{game}をしていて、{thing}をなくしてしまいました。
ところが{soon}、{where=place}で強い風がふいて、{thing}を飛ばしてしまいました。

[game]
かくれんぼ | おにごっこ | けんけん | 相撲 | すごろく | かるた | 石けり | まりつき | 影ふみ | しりとり | 将棋 | 竹馬

[lost_cry]
「たいへんだ。{hue}{thing}が、どこにもない」と{hero}は{said}。
{hero}は{wept}。「{deadline}に、{thing}を見つけなくちゃ」
「{thing}や、{thing}や、どこへ行った」と{hero}は{said}。

[wept]
大つぶのなみだをこぼしました | その場にすわりこみました | 真っ青になりました | 胸がどきどきしました | {food}ものどを通りませんでした
べそをかきました

[deadline]
暗くなる前 | {feast}の前 | 雨がふる前 | {elder_any}が帰る前 | ばんごはんの前 | {weekday}まで

[elder_any]
おばあさん | おじいさん | お母さん | お父さん | {who}

[lost_search]
{spot_in}を見ました。{spot_out}も見ました。でも、あったのは{size}{object}だけでした。
まず{spot_in}をさがしました。次に{spot_out}をさがしました。どこにもありません。
{spot_in}かな。ちがいます。{spot_out}かな。ちがいます。{hero}は{place}までさがしに行きました。
いくらさがしても、見つかるのは{colour}{bit}ばかりでした。

[lost_meet]
そこへ、{beast}の{pal=nick}が通りかかりました。「{why}」と{pal}は{said}。「いっしょにさがしてあげる」
泣き声を聞いて、{beast}の{pal=nick}がやって来ました。「{calm}。二人なら、きっと見つかるよ」
しょんぼり歩いていると、{trait}{beast}の{pal=nick}に会いました。{pal}は{how}「手伝うよ」と言ってくれました。

[why]
どうしたの | 何があったの | なぜ泣いているの | 元気がないね | 落とし物かい | おなかがすいたの | 話してごらん

[calm]
だいじょうぶ | 泣かないで | まかせておいて | 元気を出して | あきらめないで | 心配いらないよ

[lost_found]
二人は{where}へもどりました。すると、{lay_spot}で{hue}{thing}が{state}いました。
「最後に見たのはどこ」と{pal}は{said}。「{where}だよ」と{hero}は答えました。行ってみると、{thing}は{lay_spot}で{state}いました。
{beast}の足あとを追って{where}まで行くと、{lay_spot}に{thing}が落ちていました。
{pal}は{where}の方へ走り出しました。「あそこに何か{hue}物がある」それは{lay_spot}で{state}いる{thing}でした。

[lay_spot]
{tree}の枝 | 石と石の間 | 鳥の巣の中 | {trait}{beast}のとなり | 水たまりの中 | 落ち葉の下 | {flower}の花の上 | {who}の荷車の上 | 草のかげ
お地蔵さまの足もと

[state]
ぬれて | 光って | 風にゆれて | どろだらけになって | 朝日をあびて | ころがって | ぽつんと待って

[lost_thanks]
「ありがとう、{pal}」と{hero}は{said}。そして{food}を半分あげました。
{hero}は{joy}。それから二人で{food}と{food}を食べました。
お礼に、{hero}は{pal}に{count}の{colour}{bit}をあげました。
「{pal}のおかげだよ」と{hero}は{said}。{pal}は{shy}。

[shy]
てれて笑いました | しっぽをふりました | ほおを赤くしました | {food}をほしがりました | 鼻歌をうたいました | ぴょんとはねました

# こまっている友だち。こまりごとには、それぞれ合った助け方があります。
[repair]
{repair_meet}{repair_tell}{sight}
  {repair_idea}{repair_do}
  {repair_done}{end_two}

[repair_meet]
{time}、{hero}が{place}を歩いていると、{beast}の{pal=nick}が{sighing}いました。
{time}、{hero}は{place}で、{sighing}いる{beast}の{pal=nick}に会いました。
{time}、{hero}の家の戸をたたく音がしました。立っていたのは{beast}の{pal=nick}でした。

[sighing]
ため息をついて | しくしく泣いて | 頭をかかえて | ぼんやりして | 下を向いて | うろうろして

[repair_tell]
「{why}」と{hero}は{said}。「{problem=trouble.says}」と{pal}は{said}。
{pal}は{how}「{problem=trouble.says}」と打ち明けました。{hero}はだまって聞きました。
「{problem=trouble.says}。{feast}はもうすぐなのに」と{pal}は{said}。

[trouble: says tool fix done]
屋根から雨がもるんだ / はしごと板と釘 / 屋根に登って、{n}枚の板を打ちつけました / もう一しずくももりません
荷車の輪がこわれたんだ / 金づちとかたい木 / 新しい輪をけずって、しっかりはめました / 荷車は{place}まですいすい走りました
一番いい着物がやぶれたんだ / 針と{colour}糸 / {n}針も細かくぬい合わせました / やぶれたところは、だれにもわかりません
たこが木に引っかかったんだ / 長い竹ざお / 一番上の枝まで登って、そっと外しました / たこは{place}の空へ高く上がりました
寒くてねむれないんだ / わらと綿入れのふとん / わらをしいて、ふとんをふんわりかけました / すぐに気持ちのよい寝息が聞こえました
米びつにねずみが出るんだ / ちくわと木の箱 / ねずみを箱にさそって、{place}へ引っこしさせました / ねずみからは後で葉書がとどきました
舟に穴があいたんだ / 木の皮と松やに / 穴に皮を当てて、松やにでふさぎました / 舟は白鳥のようにうかびました
雪で道がうまってしまったんだ / {n}本のほうきと雪かき / 夕方まで雪をかいて、道を作りました / 道はお皿のようにきれいになりました
歌の続きを忘れたんだ / 古い歌の本とろうそく / {times}もいっしょに歌いました / 通りじゅうの人が歌い出しました
畑が草だらけなんだ / かまと手ぬぐい / 門のところから一本残らず草を取りました / {flavour}の芽が気持ちよさそうにのびました
戸が開かなくなったんだ / 鳥の羽根とごま油 / すみからすみまで油をぬって、力いっぱい引きました / 戸は音もなく開きました
灯ろうの火が消えたんだ / 火打ち石とひとさじの油 / 灯ろうをみがいて、火をともしました / 明かりは{village}からも見えました
手紙が書けないんだ / すずりと{n}枚の紙 / 一字ずつ、ゆっくり書いてみせました / 手紙は{who}がとどけてくれました
みつばちがにげたんだ / 鈴とはちみつ / 羽音を追いかけて、鈴を鳴らしました / みつばちは一匹ずつ帰ってきました
井戸におけを落としたんだ / 長いなわとかぎ針 / なわをたらして、おけを引き上げました / つめたい水がたっぷりくめました
おふろがわかないんだ / かわいた薪とうちわ / 顔を真っ黒にして、火をおこしました / おふろはちょうどいい湯かげんになりました

[repair_idea]
{hero}は{thought}。そして家から{problem.tool}を持ってきました。
「いいことを思いついた」と{hero}は{said}。二人は{who}に{problem.tool}を借りました。
「{calm}」と{hero}は{said}。いるものは、{problem.tool}です。
二人が{who}に相談すると、{problem.tool}を貸してくれました。

[thought]
頭をひねりました | じっと考えました | 目をとじて考えました | {tree}のまわりを{times}回りました | 鼻をこすりました | 空を見上げました

[repair_do]
{hero}は{problem.fix}。そのあいだに{pal}は{food}を作りました。
はじめはうまくいきません。それでも{hero}は{problem.fix}。
{pal}が{music}を鳴らして元気づけ、{hero}は{problem.fix}。
汗をふきながら、{hero}は{problem.fix}。終わると二人で{food}を食べました。

[repair_done]
{problem.done}。「{praise}」と{pal}は{said}。
とうとうできあがりました。{problem.done}。{pal}は{joy_pal}。
{village}の鐘が{tsu}鳴ったころ、{problem.done}。

[praise]
{hero}はすごい | 助かったよ | 一人ではとてもできなかった | 今夜はよくねむれる | 何とお礼を言ったらいいだろう | さすがは{hero}だ

[joy_pal]
手をたたいて喜びました | {times}も頭を下げました | おどり出しました | {hero}にだきつきました | {size}{object}をお礼にくれました | うれし泣きをしました

# しっぱいと、あやまること。
[broken]
{broken_how}{broken_hide}{sight}
  {broken_ask}{broken_tell}
  {broken_mend}{end}

[broken_how]
{time}、{hero}は{game}をしていて、{senior=elder.noun}の{hue=colour}{item=breakable}をわってしまいました。
{time}、がちゃんと音がしました。{hero}が{senior=elder.noun}の大事な{hue=colour}{item=breakable}を落としたのです。
{time}、{hero}は{senior=elder.noun}の{hue=colour}{item=breakable}にそっとさわってみました。すると手がすべって、{tsu}にわれてしまいました。
{time}、{hero}の投げた{ball}が、{senior=elder.noun}の{hue=colour}{item=breakable}に当たりました。

[ball]
まり | 雪玉 | 石 | まくら | 下駄 | みかん | お手玉 | どんぐり

[breakable]
茶わん | 花びん | 皿 | 急須 | 置き時計 | 鏡 | つぼ | 植木ばち | どんぶり | ランプ | 水がめ | とっくり | すずり | 金魚ばち

[broken_hide]
だれも見ていません。{hero}はかけらを{spot_in}にかくしました。
{hero}はかけらを{spot_out}にうめて、{pretended}。
「{beast}のせいにしよう」と{hero}は思いました。
「だまっていれば、わからない」{hero}は{pretended}。

[pretended]
口笛をふきました | ふとんにもぐりました | 本をさかさまに読みました | ねたふりをしました | 庭をはきました | 知らん顔をしました

[broken_ask]
{meal}のとき、{senior}が「{item}を知らないかい」と言いました。{hero}は{blushed}。
そこへ{senior}が帰ってきました。「{hue}{item}はどこだろう」{hero}は{blushed}。
{hero}の頭の中は{item}のことでいっぱいです。{food}も味がしません。
その夜、{hero}はねむれませんでした。目をとじると{hue}{item}がうかんできます。

[meal]
朝ごはん | 昼ごはん | 夕ごはん | おやつ

[blushed]
耳まで赤くなりました | 下を向きました | つばを飲みこみました | はしを落としました | 何も言えませんでした | ひざがふるえました

[broken_tell]
{hero}は深く息をすいました。「ごめんなさい。わったのはわたしです」と{hero}は{said}。
とうとう{hero}は{told}、「{item}をわって、かくしました。ごめんなさい」と言いました。
「やっぱり本当のことを言おう」{hero}は{senior}に何もかも話しました。

[told]
立ち上がって | 泣き出して | かけらを持ってきて | {senior}の手を取って | たたみに手をついて

[broken_mend]
{senior}はしばらくだまっていました。それから「{forgive}」と{how}言いました。二人は{item}をのりでつなぎ、{flower}をそえました。
「{forgive}」と{senior}は{said}。{item}は金でつがれて、{almost}。
{senior}は笑いました。「{forgive}」二人は{food}を食べ、{hero}は新しい{item}のためにお金をため始めました。
「{forgive}」{hero}は{days}のあいだ庭の手伝いをして、{market}で{colour}{item}を買いました。

[forgive]
よく話してくれたね | {item}より、正直な心が大事だよ | わたしも子どものころ、一つわったよ | かけらはつなげばいい | 知っていて、待っていたんだよ
けががなくてよかった | 勇気がいっただろう

[almost]
前よりきれいになりました | 少し曲がっていますが、りっぱに使えます | 地図のようなもようができました | 家の宝物になりました

[market]
市場 | となり町 | 村の店 | お祭りの夜店

# 旅。
[trip]
{trip_plan}{trip_pack}{sight}
  {trip_go}{trip_see}{trip_more}
  {trip_there}{trip_home}{end_two}

[trip_plan]
{time}、{hero}と{beast}の{pal=nick}は、{where=place}まで旅をすることにしました。
{time}、{beast}の{pal=nick}がさそいに来ました。「{where=place}へ行ってみようよ」
{time}、{hero}は地図を広げました。「{where=place}にはまだ行ったことがない。{pal=nick}、いっしょに行こう」

[trip_pack]
荷物は{food}と{size}{thing=object}、それに{count}の{colour}{bit}です。
ふろしきに{food}と{colour}{thing=object}をつつみました。
「{thing=object}を忘れないで」と{pal}は{said}。おべんとうは{food}です。

[trip_go]
二人は{vehicle}に乗り、{who}に手をふりました。
はじめは歩いて、とちゅうで{who}の{vehicle}に乗せてもらいました。
乗り物がないので、二人は歌いながら歩きました。
「出発だ」と{who}がさけび、{vehicle}は動き出しました。

[vehicle]
汽車 | 渡し舟 | 馬車 | 気球 | 牛車 | そり | いかだ | 帆かけ舟 | 人力車 | 荷車

[trip_see]
道では{flock}が{rested}いました。
橋まで来ると、{trait}{beast}が「どなたですか」と聞きました。「{hero}と{pal}です」と二人は答えました。
丘の向こうで、{who}が{n}匹の{small}をさがしていました。
昼には{tree}の下で{food}を食べました。

[trip_more]
急に{sky_rain}、二人は{shelter}で休みました。
道に迷いましたが、{trait}{beast}が教えてくれました。
「まだ着かないの」と{pal}は{times}も聞きました。
つかれると、{hero}が{trait}{beast}の話をしました。
道のとちゅうに川がありました。二人は{thing}を使って向こう岸へわたりました。

[sky_rain]
雨がふってきて | かみなりが鳴って | 雪がふり出して | ひょうがふってきて | 風が強くなって

[shelter]
お寺の軒下 | {tree}の下 | 炭焼き小屋 | 橋の下 | 洞くつの中 | {who}の家

[trip_there]
とうとう{where}に着きました。二人は{fun}、{fun_end}。
「見て」と{hero}は{said}。{where}は思っていたよりずっと美しいところでした。二人は{fun}、{fun_end}。
着いたのは{evening}でした。{where}で二人は{fun}、それから{fun_end}。

[fun]
石の塔を作り | 大きなたこをあげ | {flower}をつみ | {n}そうの船を数え | つめたい水で泳ぎ | {music}を聞き | {flock}を追いかけ | {who}と相撲をとり

[fun_end]
草の上をころがりました | {food}を買いました | {who}に葉書を書きました | {colour}{bit}をひろいました | 歌を一つおぼえました
{beast}と友だちになりました | 夕日を見ました

[trip_home]
帰り道、{pal}はねむってしまい、{hero}が{thing}を持って歩きました。
家に着いたとき、{thing}は砂だらけでした。
おみやげは{count}の{colour}{bit}と{food}です。
「やっぱり家もいいね」と{pal}は{said}。

# 嵐。
[storm]
{storm_sign}{storm_warn}{sight}
  {storm_comes}{storm_guest}
  {storm_inside}{storm_after}{end_two}

[storm_sign]
{time}、空が{dark}なり、{flock}が巣へ帰っていきました。
{time}、風が{place}の方で{howl}と鳴り始めました。
{time}、山の上に{tsu}の黒い雲がならびました。

[dark]
すみのように黒く | 池のように暗く | なまり色に | ふしぎな黄色に | むらさき色に

[howl]
ごうごう | ひゅうひゅう | びゅうびゅう | がたがた | うおううおう

[storm_warn]
「嵐が来るぞ」と{who}がさけびました。{hero}は{prepared}。
{hero}には{sky}のにおいがわかりました。急いで{prepared}。
{hero}は{prepared}。それから{prepared_more}。

[prepared]
雨戸をしめました | 洗たく物を取りこみました | ろうそくを{n}本ともしました | {object}をなわでしばりました | 薪を運びました | にわとりを小屋に入れました

[prepared_more]
{food}を作りました | まどから外を見ていました | 雨もりのおけを置きました | ふとんをかぶりました | ろうそくを数えました

[storm_comes]
とうとう嵐がやって来ました。{raged}。
ぴかっ、どどん。{raged}。{hero}は{feared}。
夜になると、{raged}。{who}の{garment}まで飛んでいきました。

[raged]
{tree}が弓のように曲がりました | {place}の屋根が飛びました | 道が川になりました | かみなりが{times}も落ちました | 雨がたきのようにふりました
垣根がたおれました

[feared]
{object}をだきしめました | 大きな声で歌いました | かみなりの数を数えました | {spot_in}にかくれました | 少しもこわがりませんでした

[storm_guest]
そのとき、とんとんと戸が鳴りました。ずぶぬれの{beast}の{pal=nick}です。「{plea}」
嵐の中を、{beast}の{pal=nick}がやって来ました。「{plea}」
外で小さな声がしました。{trait}{beast}の{pal=nick}でした。「{plea}」

[plea]
家が飛んでしまったんだ | 中へ入れておくれ | 台所に川が流れているんだ | 道に迷ったんだ | ふとんが水びたしなんだ | かみなりがこわいんだ

[storm_inside]
「さあ、お入り」と{hero}は{said}。{colour}手ぬぐいと{food}をわたし、二人は朝まで{game}をしました。
{hero}は{warmed}。{pal}は{trait}{beast}の昔話をしました。
「火のそばにおいで」{hero}は{warmed}。やがて二人は、かみなりを聞いても笑っていました。

[warmed]
{food}をあたためました | ぬれた{garment}をかわかしました | ふとんを{n}枚もしきました | {music}を聞かせました | 最後の{food}を分けました

[storm_after]
次の朝、空は晴れて、{place}の上ににじがかかりました。
嵐がすぎると、二人は{cleared}。
次の日、二人が{cleared_te}いると、{who}が{food}を持ってきてくれました。
目がさめると、屋根で{flock}が{rested}いました。二人は{cleared}。

[cleared]
{pal}の家を直しました | 折れた枝をひろいました | たおれた{flower}を起こしました | 垣根を立てました | 道をはきました

[cleared_te]
{pal}の家を直して | 枝をひろって | 屋根をふいて | 垣根を立てて | どろをかき出して

# 大会。
[contest]
{contest_news}{contest_wish}{sight}
  {contest_train}{contest_day}
  {contest_turn}{contest_prize}{end_two}

[contest_news]
{time}、{place}に立て札が立ちました。「{weekday}に{match=event}大会。一等は{size}{hue=colour}{thing=object}」
{time}、{who}が太鼓をたたいて回りました。「{weekday}に{match=event}大会をする。一等には{size}{hue=colour}{thing=object}をあげよう」
{time}、村は{match=event}大会の話でもちきりでした。一等になれば{size}{hue=colour}{thing=object}がもらえます。

[event]
かけっこ | もちつき | のど自慢 | 水泳 | たこあげ | 雪だるま | 口笛 | つり | なぞなぞ | 早起き | こま回し | 竹馬 | 相撲 | 俳句 | にらめっこ | 木登り

[contest_wish]
「あの{thing}がほしいな」と{hero}は思いました。けれども、{beast}の{pal=nick}は{strong}。
{hero}は前から{thing}がほしかったのです。でも{beast}の{pal=nick}は{strong}。
「きみには無理だよ」と{beast}の{pal=nick}が言いました。{pal}は{strong}。

[strong]
去年の一等です | 村一番の名人です | 一度も負けたことがありません | {times}も勝っています | {who}より上手です

[contest_train]
{hero}は毎{mai}、{place}で練習しました。{garment}に穴があくほどでした。
{who}が{hero}に教えてくれました。「{advice}」
{days}のあいだ、{hero}は{food}だけを食べて練習しました。

[advice]
あわてず、ゆっくり | 目をしっかり開けて | まず{food}を食べること | 後ろを見ないこと | 息をすって、はいて | 楽しむのが一番
一日に{times}やってごらん

[contest_day]
大会の日、{place}は{flower}でかざられ、{n}人もの人が集まりました。
いよいよその日です。{hero}は{colour}{garment}、{pal}は{colour}はちまきをしめています。
「用意、始め」と{who}が声をかけ、{match}大会が始まりました。

[contest_turn]
とちゅうで{pal}が{mishap}ので、{hero}は引き返して助けました。二人ともびりでした。
{hero}は先頭でした。けれども{pal}が{mishap}ので、もどって手をかしました。
{pal}はやはり上手でした。でも{hero}はあきらめません。とうとう二人は同じ点になりました。
おどろいたことに、{pal}が{mishap}のです。{hero}はほんの少しの差で勝ちました。

[mishap]
つまずいた | しゃっくりを始めた | 下駄をなくした | くしゃみをした | 足がつった | はちにさされた | {beast}にぶつかった

[contest_prize]
「{thing}は二人のものだ」と{who}が言いました。{day_early}は{hero}、{day_late}は{pal}が使うことになりました。
{who}が{hue}{thing}を{hero}にわたしました。{hero}はそれを{pal}と分け合いました。
もう、だれも{hue}{thing}のことを気にしません。二人は{place}で{food}を食べました。
{hue}{thing}は{trait}{beast}がもらいました。でも{hero}と{pal}は友だちになりました。

# ひみつ。
[secret]
{secret_find}{secret_read}{sight}
  {secret_follow}{secret_step}
  {secret_chest}{secret_share}{end_two}

[secret_find]
{time}、{hero}は{spot_in}で{hue=colour}紙を見つけました。
{time}、{hero}が古い本を開くと、{hue=colour}紙がはらりと落ちました。
{time}、{hero}は{place}で、びんに入った{hue=colour}紙をひろいました。

[secret_read]
紙には「{clue}、{n}歩進んで、ほれ」と書いてありました。
それは地図で、{place}に印がついていました。はしには「{clue}」とありました。
「{clue}。ただし友だちと行くこと」そう書いてありました。

[clue]
{tree}のかげを見よ | {flock}の後を追え | {place}から東へ歩け | {beast}の形の石をさがせ | {flower}のさく道を行け | {who}に{object}を借りよ

[secret_follow]
{hero}は{beast}の{pal=nick}にだけ話しました。二人は{when_secret}、ちょうちんと{food}を持って出かけました。
「ひみつを守れるかい、{pal=nick}」と{hero}は{said}。となりの{beast}はうなずきました。
{when_secret}、{hero}は{beast}の{pal=nick}と{place}で待ち合わせました。

[when_secret]
真夜中に | 日の出前に | 夕やけのころ | 満月の夜に | 朝ごはんの前に

[secret_step]
一歩、二歩、三歩。二人は小声で数えました。{trait}{beast}が{watched}。
{tool}でほっていくと、手が{colour}土でよごれました。{trait}{beast}が{watched}。
「きっとここだ」と{pal}がささやきました。二人は{count}の石をどけました。

[tool]
くわ | さじ | 竹の棒 | シャベル | おわん

[watched]
ふしぎそうに見ていました | 木の上からのぞいていました | わけを知りたがりました | そばでねてしまいました | ちょうちんを持ってくれました

[secret_chest]
出てきたのは{size}箱でした。中には{colour}{thing=object}と、{giver}の手紙が入っていました。
かちりと音がして、{size}戸が開きました。向こうは{flower}の庭で、真ん中に{colour}{thing=object}がありました。
土の中からつぼが出てきました。入っていたのは、{colour}{bit}と{colour}{thing=object}、そして「{note}」という手紙です。

[note]
一番の宝は、いっしょにほった友だちです | 次の人のために何か入れてください | よくできました | 毎日よく笑い、{food}を食べなさい
見つけた人は、願いごとをしてよい

[secret_share]
二人は{thing}を元にもどし、次の人のために{colour}{object}を入れました。
「これは二人のひみつだよ」と{hero}は{said}。{hue}紙は{spot_out}にかくしました。
{hero}が{thing}を、{pal}が箱をもらいました。このことは今もだれも知りません。

# おくりもの。
[gift]
{gift_why}{gift_poor}{sight}
  {gift_make}{gift_trouble}
  {gift_day}{end}

[gift_why]
{time}、{hero}は、もうすぐ{senior=elder.noun}の誕生日だと気がつきました。
{time}、{hero}は{senior=elder.noun}におくりものをしようと思いました。
{time}、{senior=elder.noun}が{age}になると聞いて、{hero}は考えました。

[age]
三十 | 四十 | 五十 | 六十一 | 七十 | 八十八 | 九十 | 百

[gift_poor]
「お金は少ししかない。{size}{thing=object}を自分で作ろう」と{hero}は{said}。
店の{object}は高くて買えません。「それなら{thing=object}を作ろう」と{hero}は決めました。
{idea}はどうだろう。いや、だめだ。「そうだ、{thing=object}だ」と{hero}は{said}。

[idea]
飴 | 石けん | 歌 | 花たば | 詩 | 金魚 | くつ下 | 肩もみ

[gift_make]
{hero}は{material}と{material_more}を集めて、{days}のあいだ働きました。
{who}から{material}をもらい、家で{material_more}を見つけて、{hero}は作り始めました。
毎{mai}、{hero}は{spot_in}で{material}とにらめっこをしました。

[material]
古いかん | 桜の板 | {colour}毛糸 | こわれた時計 | 一たばのわら | 皮の切れはし | {colour}和紙 | 竹の節

[material_more]
{n}本の糸 | のりのつぼ | {colour}絵の具 | 長いひも | 鳥の羽根 | 少しの金粉 | {count}の{bit}

[gift_trouble]
一つ目はこわれました。二つ目は{beast}のような形になりました。三つ目の{thing}は{good}。
{trait}{beast}に半分食べられて、やり直しです。それでも{thing}は{good}。
「何をしているの」と{senior}が聞きました。「何でもない」と{hero}は{thing}の上にすわりました。
指を{times}もけがしました。でも{thing}は{good}。

[good]
よくできました | 思ったより上手にできました | とても美しくできました | 少し曲がっていますが、いい形になりました | やっとできあがりました
お姫さまにもあげられるほどです

[gift_day]
誕生日、{senior}は{colour}包みを開けました。「{thing}だ」{senior}は{touched}。「{gift_word}」
{thing}を見ると、{senior}は{touched}。「{gift_word}」
「どうぞ」と{hero}は{said}。{senior}は{touched}。「{gift_word}」

[gift_word]
こんなにうれしい物はない | {hero}は手が器用だねえ | 一生大事にするよ | 金の山よりずっといい | ちょうどほしかったんだ | さあ、{food}を食べよう

[touched]
泣きながら笑いました | {hero}をだきしめました | それを床の間にかざりました | {who}に見せに行きました | そっと目をふきました | しばらく声が出ませんでした

# 練習。
[skill]
{skill_see}{skill_try}{sight}
  {skill_teacher}{skill_practice}
  {skill_fall}{skill_can}{end_two}

[skill_see]
{time}、{beast}の{pal=nick}が{place}で{art=ability.te}いました。「わたしもやりたい」と{hero}は思いました。
{time}、{hero}はしょんぼりしていました。{art=ability.base}ことができないのは自分だけです。笑わなかったのは、{beast}の{pal=nick}だけでした。
{time}、{hero}は「今日から{art=ability.base}練習をする」と決めました。{beast}の{pal=nick}が教えてくれることになりました。

[ability: base te]
泳ぐ / 泳いで
口笛をふく / 口笛をふいて
竹馬に乗る / 竹馬に乗って
自転車に乗る / 自転車に乗って
こまを回す / こまを回して
{music}をひく / {music}をひいて
逆立ちをする / 逆立ちをして
二重とびをする / 二重とびをして
氷の上をすべる / 氷の上をすべって
馬に乗る / 馬に乗って
編み物をする / 編み物をして
字を書く / 字を書いて
舟をこぐ / 舟をこいで
木に登る / 木に登って
俳句をよむ / 俳句をよんで
盆踊りをおどる / 盆踊りをおどって
そばを打つ / そばを打って
たこをあげる / たこをあげて

[skill_try]
ところが、はじめての日は{failed}。
さっそくやってみると、{failed}。
やさしそうに見えたのに、{failed}。{flock}が笑いました。

[failed]
水たまりに落ちました | {flower}の中にころびました | 何もかもうまくいきません | 下駄をなくしました | {beast}の上にたおれました | 手も足も動きません
{who}に笑われました | すぐにつかれてしまいました

[skill_teacher]
「はじめからできる人はいないよ。{advice}」と{pal}は{said}。
「わたしだって{times}も失敗したよ。{advice}」と{pal}は{said}。
{pal}は{food}をくれて、「{advice}」と言いました。

[skill_practice]
{hero}は練習しました。{place}でも、夢の中でも練習しました。
{day_early}に一時間、{day_late}に二時間、{hero}は練習しました。
毎{mai}、二人は{place}で会い、{pal}が手を取ってくれました。

[skill_fall]
こぶが{count}できましたが、{hero}はやめませんでした。
泣きたくなることもありました。そんなときは、{pal}が{cheered}。
「もう無理だ」と{hero}は{said}。すると{pal}が{cheered}。

[cheered]
{music}を鳴らしてくれました | おもしろい話をしてくれました | 「もう一回」と言いました | {food}を作ってくれました | 逆立ちをして見せました
だまって笑いました

[skill_can]
そして{suddenly}、とうとうできたのです。「やった」{hero}の声で、{who}が{heard}。
{suddenly}、{hero}は自分ができるようになったことに気がつきました。{pal}は{cheered_end}。
{month}になるころには、{art.base}ことにかけて、{hero}の右に出る者はいませんでした。{pal}は{cheered_end}。

[suddenly]
ある{season}の日 | {weeks}週間後 | {weekday}の朝 | だれも見ていないとき | {feast}の日

[heard]
{object}を落としました | 目をさましました | 走ってきました | 手をたたきました | まどから手をふりました

[cheered_end]
いつまでも手をたたきました | 自分のことのように喜びました | みんなに{food}をごちそうしました | {garment}を空へ投げました | おどり回りました

# 新しい友だち。
[neighbour]
{neighbour_come}{neighbour_talk}{sight}
  {neighbour_visit}{neighbour_open}
  {neighbour_play}{end_two}

[neighbour_come]
{time}、となりに荷車が止まりました。{beast}の{pal=nick}が引っこしてきたのです。
{time}、空き家だったとなりの家から、けむりが上がりました。{beast}の{pal=nick}がすみ始めたのです。
{time}、学校に新しい子が来ました。{beast}の{pal=nick}です。

[neighbour_talk]
「あの子は{rumour}そうだ」と{who}が言いました。「それに{rumour_more}そうだ」と{who}も言いました。
{pal}はだれとも話しません。{rumour}といううわさでした。
だれも{pal}と遊びません。{rumour}と思われていたのです。

[rumour]
{bit}を食べる | 月から来た | 一度も笑ったことがない | {object}の中でねる | 竜を飼っている | {flower}がきらいだ | 夜になると光る | 虫と話をする

[rumour_more]
おふろに入らない | 足が{n}本ある | {sky}をよぶ | {food}しか食べない | 空を飛ぶ | ばけるのがうまい

[neighbour_visit]
でも{hero}は、{pal}は{lonely}のだと思いました。そこで{food}を持って、戸をたたきました。
{hero}は自分でたしかめることにしました。{colour}{garment}を着て、{pal}の家へ行きました。
「{pal}は{lonely}だけじゃないかな」{hero}は手紙を書きました。「{pal}へ。{food}は好きですか」

[lonely]
さびしい | はずかしい | 友だちがほしい | こまっている | ふるさとがこいしい

[neighbour_open]
戸が少し開きました。「{new_says}」と{pal}は{said}。「{hero_says}」と{hero}は{said}。
しばらくして、{pal}が出てきました。手には{count}の{colour}{bit}を持っています。「{new_says}」
{pal}は真っ赤になって「{new_says}」と言いました。

[new_says]
本当に遊びに来たの | {game}はできるの | だれかに声をかけられたのは、はじめて | {village}に帰りたくて泣いていたの | {food}はいかが
わたしがこわくないの

[hero_says]
{food}を持ってきたよ | {game}をしよう | となりの{hero}だよ | {village}のことを話して | ようこそ | 友だちになろう

[neighbour_play]
じつは{pal}は、{talent}ことができるのでした。たちまち子どもが{n}人も見に来ました。
二人は暗くなるまで{game}をしました。「明日もね」と{pal}が言いました。「明日もね」と{hero}も言いました。
それから二人は、{weekday}になると{place}へ出かけました。{who}も{pal}にあいさつをするようになりました。

[talent]
逆立ちで歩く | {colour}しゃぼん玉を作る | 鳥と話す | 片手で{music}をひく | だれよりもおいしい{food}を作る | 昔話を{tsu}も続けて話す

# 夜の音。
[night]
{night_noise}{night_fear}{sight}
  {night_go}{night_steps}
  {night_see}{night_then}{end}

[night_noise]
{time}のことです。夜になって、{spot=spot_in}で{sound=noise}と音がしました。
{time}のことです。真夜中に{hero}は目をさましました。{spot=spot_in}で{sound=noise}と鳴っています。
{time}のことです。{hero}がふとんに入ると、{spot=spot_in}から{sound=noise}と聞こえてきました。

[noise]
かりかり | とんとんとん | ほうほう | みしみし | きいきい | ごろごろ | ぴちゃん | ずるずる | しゅうしゅう | ちりん | がさごそ | こつこつ

[night_fear]
{hero}はふとんを頭からかぶりました。{fear=monster}でしょうか。
「{fear=monster}だ」{hero}は{trembled}。
{hero}は{trembled}。「{fear=monster}なんて、いるはずがない」

[monster]
おばけ | 竜 | どろぼう | 山んば | 大入道 | 化けねこ | 鬼 | 雪女 | ろくろ首 | 一つ目小僧

[trembled]
木の葉のようにふるえました | {n}まで数えました | {object}をにぎりしめました | 息を止めました | 目をぎゅっととじました

[night_go]
また{sound}と音がします。{hero}は{light}と{weapon}を持って起き上がりました。
でも、正体が知りたい。{hero}は{light}に火をつけ、{weapon}を手に、そろりそろりと歩きました。
「だれだ」と言うと、{sound}と返事がありました。{hero}は{weapon}をかまえました。

[light]
ろうそく | ちょうちん | ランプ | 行灯 | たいまつ

[weapon]
ほうき | しゃもじ | まくら | つりざお | かさ | なべのふた | ぞうり | 竹ざお

[night_steps]
ろうかがぎしりと鳴りました。月の光が{object}を照らしています。一歩、二歩、三歩。
胸がどきんどきんと鳴りました。遠くで{village}の鐘が{tsu}鳴りました。
しょうじにうつった{object}のかげが、{beast}に見えました。

[night_see]
すると、{spot}に{size}{guest=beast}がいました。頭に{object}をのせています。
{spot}をのぞくと、{colour}目が二つ光っていました。それは{trait}{guest=beast}でした。
そこにいたのは、{food}を食べている{trait}{guest=beast}でした。

[night_then]
「びっくりしたよ」と{hero}は{said}。「こっちこそ」と{guest}は{said}。二人は{food}を食べて笑いました。
{guest}はおなかがすいていたのです。{hero}が{food}をやると、足もとで丸くなってねむりました。
「おまえが{fear}だったのか」と{hero}は笑い、{guest}を{spot_out}までだいて行きました。お母さんが待っていました。
{hero}は{guest}に「{pet}」という名をつけました。それから{weekday}の夜になると、{guest}が遊びに来ます。

[pet]
まめ | ぼたん | みかづき | もち | ごま | しずく | あられ | すず | おはぎ | つゆ

# 種。
[seed]
{seed_get}{seed_plant}{sight}
  {seed_wait}{seed_doubt}
  {seed_grow}{seed_share}{end}

[seed_get]
{time}、{hero}は{giver}から{size}{hue=colour}種をもらいました。
{time}、{hero}の{garment}のそでから、{hue=colour}種が出てきました。
{time}、{hero}は{object}を{size}{hue=colour}種と取りかえました。

[seed_plant]
{hero}は{spot_plant}に種をまき、歌をうたってやりました。
「何になるのかな」と{hero}は{said}。そして{spot_plant}に種をうめました。
{hero}は種を{colour}はちに植えて、{spot_sun}に置きました。

[spot_plant]
庭のすみ | 井戸のそば | {tree}のとなり | 畑の真ん中 | 垣根の下 | 川の土手 | {place}の日なた | {flower}の横

[spot_sun]
まどのそば | 日なた | 縁側 | 屋根の上 | 戸口

[seed_wait]
毎{mai}水をやりました。{day_early}は何も起きません。{day_late}も何も起きません。
一日たち、二日たち、{days}たちました。{hero}は{waited}。
{hero}は{waited}。{waited_more}。

[waited]
待ちました | 本を読んでやりました | {music}を聞かせてやりました | {flock}を追いはらいました | {feast}の話をしてやりました

[waited_more]
{object}で高さをはかりました | まわりに石をならべました | 寒い夜はわらをかけました | ねる前に「おやすみ」と言いました | 毎日{times}も見に行きました

[seed_doubt]
「ただの小石だよ」と{who}は笑いました。でも{hero}は信じていました。
「{doubt}」と{who}は言いました。「{patience}」と{hero}は{said}。
となりの{trait}{beast}が「{doubt}」と首をふりました。「{patience}」と{hero}は{said}。

[doubt]
芽は出ないよ | 寒すぎるよ | {flock}に食べられるよ | 食べてしまえばよかったのに | それはボタンだよ

[patience]
いいことには時間がかかるんだ | まだねむっているだけだよ | いつまでも待つよ | 今に見ていて | きっと出てくるよ

[seed_grow]
{month}になると、緑の芽が出ました。ずんずんのびて、{height}までとどきました。{crop=plant.name}です。
ある{daypart}、芽が出て、{days}のうちに{height}より高くなりました。それは大きな{crop=plant.name}でした。
{weeks}週間後に葉が一枚、また一枚。そして{beast}ほどもある{crop=plant.name}ができました。

[height]
まど | 屋根 | 火の見やぐら | {tree} | 雲 | お寺の屋根 | 山の上

[plant: name dish]
かぼちゃ / かぼちゃの煮物
大根 / 大根のみそ汁
すいか / つめたいすいか
とうもろこし / 焼きとうもろこし
さつまいも / 焼きいも
いちご / いちごのジャム
ひまわり / ひまわりの種のおかし
白菜 / 白菜の鍋
きゅうり / きゅうりの漬物
トマト / トマトのサラダ
柿の木 / 干し柿
なす / 焼きなす
里いも / 里いもの汁
へちま / へちまの炒め物

[seed_share]
{who}も{who}も{flock}も、みんなで引っぱりました。その晩は村じゅうで{crop.dish}を食べました。
「みんなで{crop.dish}を食べよう」と{hero}は{said}。{who}は{times}もおかわりをしました。
{hero}は{who}に分け、{flock}にも分け、のこりで{crop.dish}を作りました。
秋になると、{hero}は{n}つぶの{hue}種を取って、{trait}{beast}にあげました。

# お使い。
[errand]
{errand_list}{errand_go}{sight}
  {errand_stall}{errand_forget}
  {errand_cook}{end}

[errand_list]
{time}、{hero}は{senior=elder.noun}にお使いをたのまれました。{ware}と{ware_more}と、{n}個の{need=fruit}です。
{time}、{hero}は{senior=elder.noun}に何か作ろうと思いました。いるものは、{ware}と{ware_more}、それに{n}個の{need=fruit}です。
{time}、{senior=elder.noun}がかぜをひきました。「おいしいものを作るよ」{hero}は紙に書きました。{ware}、{ware_more}、{need=fruit}を{n}個。

[ware]
塩 | 米 | しょうゆ | 味噌 | 砂糖 | 酢 | 油 | 小麦粉 | 酒かす | かつおぶし | のり | ごま

[ware_more]
大きな白菜 | 卵 | ねぎ | はちみつ | いも | 玉ねぎ | 太った魚 | 豆腐 | こんにゃく | あぶらあげ

[fruit]
りんご | みかん | 柿 | 梨 | 桃 | 栗 | すもも | トマト | かぶ | 柚子 | びわ | なす

[errand_go]
忘れないように、{hero}は「{need}、{need}」とくり返しながら歩きました。
{colour}かごを下げて、{hero}は{place}の市場へ行きました。
とちゅうで{trait}{beast}に会って、{chatted}。

[chatted]
{flock}の話をしました | {game}をしました | {garment}をほめました | なやみを聞いてやりました | いっしょに歌をうたいました

[errand_stall]
市場には{colour}{bit}や{colour}{garment}がならび、{food}のにおいがしました。
「さあさあ、{flower}はいかが。{ware_more}はいかが」と{who}がよんでいます。
{who}が{music}を鳴らしていて、{hero}は口を開けて聞いていました。

[errand_forget]
家に帰ると、かごの中は{size}{object}と{colour}{bit}だけ。{need}がありません。「しまった」と{hero}は{said}。
さあ買おうとすると、お金がありません。「{need}のかわりに、{colour}{bit}ではどうでしょう」{who}は{nodded}。
ところが{need}は売り切れでした。「うちの{need}を持ってお行き」と{who}が言ってくれました。
橋の上でつまずいて、{need}が川に落ちました。{trait}{beast}が{fished}。

[nodded]
うなずきました | 笑ってゆるしてくれました | 歌も一つたのみました | 「笑顔もおくれ」と言いました

[fished]
ひろってくれました | あみですくってくれました | 泳いで取ってくれました

[errand_cook]
家ではなべがぐつぐつ鳴っています。{need}を入れると、{food}ができました。{senior}は{times}もおかわりをしました。
まぜては味見、まぜては味見。やっと{food}ができました。「{tasty}」と{senior}は{said}。
{need}で作った{food}のにおいが通りに流れて、{n}人も食べに来ました。{senior}は{touched_short}。

[tasty]
おいしいねえ | 塩が少し足りないが、りっぱなものだ | だれに教わったんだい | もう元気になったよ | おかわりをおくれ

[touched_short]
大喜びでした | 目を丸くしました | 声を上げて笑いました | とても満足でした

# 橋の上のなぞかけ。
[bridge]
{bridge_meet}{bridge_ask}{sight}
  {bridge_think}{bridge_hint}
  {bridge_answer}{bridge_gift}{end_two}

[bridge_meet]
{time}、{hero}と{beast}の{pal=nick}が{where=place}へ行こうとすると、橋の上に{fear=monster}がすわっていました。
{time}、{where=place}へ続く道の真ん中に、{fear=monster}が立っていました。{hero}と{beast}の{pal=nick}は通れません。
{time}、{fear=monster}が{hero}と{beast}の{pal=nick}をよび止めました。{where=place}へ行くとちゅうのことでした。

[bridge_ask]
「{puzzle=riddle.q}。答えれば通してやろう」と{fear}は{said}。
{fear}は{how}「通りたければ答えよ。{puzzle=riddle.q}」と言いました。
「なぞを出すぞ。{puzzle=riddle.q}」と{fear}は{said}。

[riddle: q hint a]
使うほど短くなるものは何か / 机の上にある / 鉛筆
口がないのに歌い、足がないのに走るものは何か / 魚がすんでいる / 川
夏には着物を着て、冬になるとぬぐものは何か / 鳥が巣を作る / 木
羽がないのに飛び、目がないのに泣くものは何か / 空にうかんでいる / 雲
いつも後ろについて来て、暗くなると消えるものは何か / 足もとにいる / 影
だまっているのに、何でも教えてくれるものは何か / 図書館にたくさんある / 本
たたかれるほど、大きな声で鳴くものは何か / お祭りで聞こえる / 太鼓
一本足で、雨の日だけ花を開くものは何か / 玄関に立っている / かさ
白い着物で、火をともすと背がちぢむものは何か / 夜に使う / ろうそく
自分のものなのに、人の方がよく使うものは何か / だれでも一つ持っている / 名前
笑えば笑い、泣けば泣くものは何か / かべにかかっている / 鏡
生まれたときは丸く、だんだんやせて、また太るものは何か / 夜空にいる / 月
歯がたくさんあるのに、何も食べないものは何か / 髪に使う / くし
朝生まれて、日が出ると死んでしまうものは何か / 草の葉にのっている / 露
足が四本あるのに、一歩も歩かないものは何か / その上で字を書く / 机
ふめばふむほど、かたくなるものは何か / みんなが通る / 道

[bridge_think]
{hero}は{thought}。{wrong}かな。いや、ちがいます。
「{wrong}」と{pal}が答えました。「ちがう」と{fear}は{said}。
二人は{food}を食べながら考えました。{n}分たっても、わかりません。

[wrong]
{object} | {flavour}

[bridge_hint]
「一つ教えてやろう。{puzzle.hint}」と{fear}は言いました。
通りかかった{who}が「{puzzle.hint}」と教えてくれました。
{pal}がふと「{puzzle.hint}ものじゃないかな」と言いました。

[bridge_answer]
「わかった、{puzzle.a}だ」と{hero}は{said}。
{hero}は{how}「答えは{puzzle.a}」と言いました。
「{puzzle.a}」{hero}と{pal}は声をそろえました。

[bridge_gift]
{fear}は{amazed}。そして{size}{colour}{object}をくれました。
「見事だ」と{fear}は{amazed}。二人は無事に{where}に着きました。
{fear}は{amazed}。三人は{where}まで行って、{food}を食べました。

[amazed]
目を丸くしました | 大声で笑いました | くやしがりました | ひざをたたきました | けむりのように消えかけて、またもどってきました | 頭を下げました

# 恩返し。
[thanks]
{thanks_save}{thanks_free}{sight}
  {thanks_gifts}{thanks_wonder}
  {thanks_watch}{thanks_word}{end}

[thanks_save]
{time}、{hero}は{place}で、わなにかかった{guest=beast}を見つけました。
{time}、けがをした{guest=beast}が{spot_out}にたおれていました。
{time}、{hero}は、川に落ちた{guest=beast}を見つけました。

[thanks_free]
{hero}は{guest}を助けて、{food}を食べさせ、{place}へ帰してやりました。
「かわいそうに」と{hero}は{said}。そして{colour}布で手当てをしてやりました。
{hero}は{guest}をだいて帰り、{days}のあいだ世話をしました。元気になると、{guest}は{place}へ帰っていきました。

[thanks_gifts]
次の朝、戸口に{colour}{bit}が{count}置いてありました。その次の朝は{food}、その次の朝は{size}{object}です。
それからふしぎなことが続きました。{weekday}には{food}が、{weekday}には{size}{object}が、戸口にとどくのです。
{days}後、目をさますと、台所に{food}ができていました。次の日は{garment}がぬい上がっていました。

[thanks_wonder]
「だれだろう」と{hero}は{said}。{who}も知らないと言います。
{hero}は{who}に聞いてみました。「さあ、{beast}じゃないかね」
{hero}は{thought}。けれども、わかりません。

[thanks_watch]
その夜、{hero}は{spot_in}にかくれて待ちました。すると、あの{guest}が、そっと戸を開けて入ってきました。
{hero}はねたふりをしていました。やって来たのは、いつかの{guest}でした。
雪の上に足あとがありました。たどっていくと、{place}であの{guest}が{busy}いました。

[thanks_word]
「助けてもらったお礼です」と{guest}は{said}。二人は{food}を食べました。
「これからは表から入っておいで」と{hero}は{said}。{guest}は{shy}。
{guest}は{how}「あのときはありがとう」と言って、{colour}{object}をくれました。

# お祭り。
[festival]
{festival_day}{festival_buy}{sight}
  {festival_cry}{festival_help}
  {festival_find}{festival_sky}{end_two}

[festival_day]
{time}、{village}でお祭りがありました。{hero}は{colour}{garment}を着て出かけました。
{time}、どんどんと太鼓が鳴りました。{village}のお祭りです。{hero}は{who}と出かけました。
{time}、待ちに待った{village}のお祭りが始まりました。

[festival_buy]
{hero}は{food}を食べ、夜店で{hue=colour}{thing=object}を買いました。
夜店には{food}や{colour}{bit}がならんでいます。{hero}は{hue=colour}{thing=object}を買いました。
{hero}は輪投げで{hue=colour}{thing=object}を取りました。

[festival_cry]
そのとき、泣き声が聞こえました。{beast}の{pal=nick}が{spot_out}で泣いています。
人ごみの中で、小さな{beast}が{hero}のそでを引きました。{pal=nick}という迷子でした。
{spot_out}に、迷子の{beast}がいました。名前は{pal=nick}といいました。

[festival_help]
「だれと来たの」と{hero}は{said}。「{lead=elder.noun}」と{pal}は答えました。
{hero}は{pal}に{hue}{thing}を貸してやりました。{pal}は泣きやんで、「{lead=elder.noun}とはぐれたの」と言いました。
「泣かないで。{lead=elder.noun}をさがしてあげる」と{hero}は{said}。

[festival_find]
二人は{place}にも{place_more}にも行きました。とうとう{spot_out}で、{pal}の{lead}が見つかりました。
{hero}は{pal}を肩車して、{music}を鳴らしました。すると{lead}が走ってきました。
{who}が太鼓の台に上げてくれました。「{pal}の{lead}はいませんか」{lead}が手をふりました。

[place_more]
おみこしの前 | 金魚すくい | おどりの輪 | 神社の石段 | 茶屋の前 | 川ぞいの道

[festival_sky]
どん、と花火が上がりました。{colour}花、{colour}花、{beast}の形の花。二人は口を開けて見ていました。
別れるとき、{hero}は{hue}{thing}を{pal}にあげました。
{lead}はお礼に{food}をくれました。三人で、{colour}花火を見ました。

# おわり。
[end_two]
それからというもの、{hero}と{pal}は{friends}。
「{goodbye}、{pal}」と{hero}は手をふりました。「{goodbye}、{hero}」と{pal}も手をふりました。
{moral_two}と、二人は思いました。
今でも{place}へ行くと、{hero}と{pal}が{together}いるのを見かけるそうです。
{bed}
めでたし、めでたし。

[friends]
一番の友だちになりました | 毎日いっしょに遊びました | {weekday}になると{place}で会いました | 兄弟のようになかよくなりました | けんかをしても、すぐになかなおりしました
何をするにもいっしょでした

[goodbye]
おやすみ | また明日 | また{weekday}に | さようなら | 気をつけて

[moral_two]
友だちは宝物だ | 二人なら何でもできる | 助け合うのはいいことだ | 親切はいつか返ってくる | 小さな手にも大きなことができる | 喜びは分けるとふえる

[together]
{food}を食べて | {game}をして | {flock}と遊んで | 笑い合って | {colour}{bit}をさがして | 昔話をして

[end]
{bed}
{moral_one}と、{hero}は思いました。
このことは、今でも{who}が{weekday}に話してくれます。
村の人は{hero}を「{title}の{hero}」とよぶようになりました。
めでたし、めでたし。

[title]
正直者 | 知恵者 | がまん強さ | 勇者 | 名人 | 働き者 | しあわせ者

[moral_one]
本当のことを言うと、心が軽くなる | 待てば花がさく | したことは、いつか返ってくる | こわくても進むのが勇気だ | 失敗しても、やり直せばいい
よく笑う人は、よくねむれる | 急がば回れだ | 一歩ずつでも山はこえられる

[bed]
その夜、{hero}は{dream}の夢を見ました。
夜になると、{hero}は{bedtime}、すぐにねむってしまいました。
やがて{place}の上に月がのぼり、{hero}は{bedtime}、目をとじました。

[dream]
{flock} | {colour}{object} | {food}でできた家 | 空を飛ぶ{object} | {trait}{beast} | {flower}の海 | 雲に乗る{beast}

[bedtime]
あたたかいお茶を飲んで | しょうじをしめて | {object}をまくらもとに置いて | 明かりを消して | 星を{n}まで数えて | 子守歌を口ずさんで | 日記を書いて
)";

}  // namespace maki
