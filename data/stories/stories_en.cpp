// The English stories, in the notation of data/stories/grammar.h. Fourteen plots share their openings, scenery, endings and
// words. What is introduced early (hero, friend, thing, colour, place) comes back later at no further choice: that is
// what there is to learn over a distance. Every alternative differs from its siblings before either ends, whatever is
// drawn in them: that makes the reading unambiguous, and a test proves it.
#include "data/stories/stories_text.h"

namespace maki {

const std::string_view kStoriesEnglish = R"(
[story]
{opening} {habit} {sight}
  {plot}

[opening]
Once upon a time there was a {trait} {newcomer} who lived {home}.
Long ago, when {longago}, a {trait} {newcomer} lived {home}.
There was once a {trait} {newcomer}, whose home was {home}.
This is the story of a {trait} {newcomer}, who lived {home}.
In the days when {longago}, there lived {home} a {trait} {newcomer}.
Not far from here, {home}, lived a {trait} {newcomer}.
Do you know about the {trait} {newcomer}? It all began {home}.
Far away, {home}, there was a {trait} {newcomer}.
{home_the} there was a house, and in the house lived a {trait} {newcomer}.

[newcomer]
{hero=child.intro}
{species} called {hero=child.name}
{trait} {species} by the name of {hero=child.name}

[child: name intro he him his He His himself]
Mia | Lily | Rosa | Nora | Ella | Ida | Clara | Hazel | Ruby | Anya | Sofia | Freya | Tilda | Wanda | Olive | Poppy / girl called @ / she / her / her / She / Her / herself
Bess | Greta | Juno | Maud | Zoe | Ivy | Hanna | Fatima | Keiko | Lucy / girl called @ / she / her / her / She / Her / herself
Tom | Ben | Leo | Max | Finn | Oscar | Hugo | Jonas | Milo | Otto | Sam | Theo | Arlo | Kofi | Emil | Ravi / boy called @ / he / him / his / He / His / himself
Noah | Jack | Felix | Gus | Yuri | Albert | Kenji | Pablo | Willem | Dan / boy called @ / he / him / his / He / His / himself

[friend: name he him his He intro]
Dora | Luna | Mabel | Petra | Stella | Ursula | Willa | Cleo | Fern | Hetty | Inga | Lotte | Beatrix | Ottilie | Viola | Pearl / she / her / her / She / Her name was @
Bruno | Kit | Basil | Nils | Rollo | Viktor | Barnaby | Edgar | Gideon | Jasper | Morris | Archie | Casper | Winston | Humphrey | Toby / he / him / his / He / His name was @

[species]
fox | bear | hedgehog | squirrel | rabbit | badger | duckling | mouse | mole | beaver | goat | donkey | goose | crow | frog | toad
turtle | raccoon | deer | lamb | puppy | kitten | pony | robin | sparrow | penguin | seal | lynx | hen | piglet | crane | dormouse
wolf | hare | camel | lizard | magpie | walrus | tiger | monkey | calf | stork | swan | snail | bat | lion | panda | parrot | pigeon | gecko
weasel | koala | zebra | moose | heron | cricket | beetle | butterfly

[trait]
brave | shy | curious | cheerful | quiet | clever | lively | kind | busy | merry | sleepy | gentle | proud | careful | noisy | playful
patient | restless | stubborn | hopeful | friendly | dreamy | polite | nimble | silly | thoughtful | tidy | jolly | bold | hungry
lazy | modest | serious | grumpy | skinny | freckled | whiskered | barefoot | cosy | wise | timid | tired | famous | forgetful | generous
lonesome | mischievous | near-sighted | plump | punctual | rosy | sturdy | talkative | well-mannered

[home]
by the {sea} | on a {size} hill | at the edge of the {woods} | above {who}'s shop | beside a {river} river | under a {tree} tree
in the village of {village} | in {village}, a village of {number} houses | behind the {size} windmill | near the {colour} lighthouse | at the end of a {size} lane
on an island full of {flower} | between {number} hills | across the bridge from the {building}
two steps from the {building} | next door to {who} | on the road to {village} | half a day from {village}

[home_the]
On top of a {size} hill | At the foot of a {tree} tree | Where the {river} river meets the sea | Behind {number} mountains
Beyond the {woods}

[sea]
sea | salt lake | harbour | wide bay | river mouth

[woods]
forest | birch woods | great park | bamboo grove | apple orchard | vineyard

[river]
slow | winding | deep | muddy | lazy | sparkling | narrow | stony

[tree]
great oak | willow | pine | cherry | hollow chestnut | crooked pear | tall poplar | maple | fig | plum

[flower]
roses | tulips | daisies | poppies | lilies | violets | bluebells | sunflowers | buttercups | pansies | snowdrops | foxgloves
primroses | irises | marigolds | peonies | cornflowers | dandelions | heather | lavender | asters | crocuses | daffodils | forget-me-nots
thistles | water lilies | clover | cowslips

[building]
bakery | school | post office | railway station | town hall | toy shop | library | fire station | dairy | theatre | clock tower | boathouse

[trade]
baker | miller | postman | teacher | sailor | farmer | tailor | shoemaker | fisherman | doctor | gardener | blacksmith | beekeeper
carpenter | painter | clockmaker | shepherd | lighthouse keeper | ferryman | candlemaker | weaver | bookseller | cook | potter
glassblower | chimney sweep | coachman | fiddler | goldsmith | hatter | landlady | judge | librarian | mayor | nurse | plumber
roofer | saddler | toymaker | watchman | woodcutter | juggler

[who]
the {trait} {trade}
{Mister} {surname}

[Who]
The {trait} {trade}
{Mister} {surname}

[Mister]
Old | Captain | Doctor | Lady | Miss | Professor | Young | Mister | Dame | Sir

[surname]
{surname_first}{surname_last}

[surname_first]
Apple | Thistle | Black | White | Stone | Honey | Pepper | Winter | Summer | Bramble | Cherry | Copper | Silver | Merry | Goose | Wool
Butter | Barley | Candle | Feather | Hazel | Iron | Moss | Nettle | Puddle | Quill | Rose | Snow | Sugar | Timber | Turnip | Velvet | Willow

[surname_last]
wood | field | worth | bottom | berry | well | smith | man | kin | wright | shaw | ham | ton | ley | by

[village]
{village_first}{village_last}

[village_first]
Hollow | Marsh | Clear | Sandy | Windy | Amber | Birch | Clover | Dapple | Elder | Fern | Golden | Heather | Ivory | Juniper | Kettle
Lark | Maple | North | Oat | Pebble | Raven | Star | Swan | Thorn | Wild | Yarrow | Under | Long

[village_last]
bridge | ford | mouth | dale | hill | port | stead | gate | church | brook | field | wick

[longago]
the moon was still young | wishes still came true | the mountains could sing | all the roads were made of grass
every cat could count | there were no clocks | stars still fell into the hay | the king wore wooden shoes

[size]
small | tiny | big | round | little | huge | long | tall | narrow | crooked | shiny | pretty | funny | soft | wooden | fine | beautiful
heavy | light | plain | perfect | dusty | rusty | painted | curved | delicate | fancy | flat | hollow | knobbly | lopsided | magnificent
marvellous | mossy | patched | peculiar | polished | precious | remarkable | second-hand | square | striped | spotted | thick
whole | folded | chipped | worn-out

[colour]
red | blue | green | yellow | white | black | purple | pink | silver | golden | brown | grey | scarlet | violet | turquoise | cream
crimson | lilac | lemon yellow | midnight blue | moss green | rose | rust red | sky blue | snow white | straw yellow

[number]
three | four | five | six | seven | nine | ten | twelve | twenty | thirteen | fifteen | forty | two dozen | a hundred | several | quite a few

[object]
kite | drum | bell | doll | lantern | whistle | button | marble | key | spoon | teapot | parasol | hat | scarf | boat | compass | ring
feather | shell | basket | blanket | bottle | brush | candle | clock | coin | cup | flute | fiddle | jar | locket | magnet | map | mask
mirror | needle | notebook | paintbox | pencil | pillow | puppet | puzzle | ribbon | rope | satchel | bracelet | slipper
spinning top | stamp | telescope | thimble | trumpet | brooch | wreath | balloon | book | comb | snow globe | crayon | crown | fan | glove
handkerchief | rubber ball | music box | tin soldier | purse | pocket knife | harmonica | horseshoe | jug | kaleidoscope | ladle
letter | mitten | mug | necklace | paper bird | penknife | pinwheel | tambourine | teddy bear | torch | vase | wallet | watch | xylophone

[food]
{flavour} {dish}

[flavour]
apple | plum | cherry | honey | walnut | carrot | pumpkin | ginger | blueberry | cinnamon | lemon | barley | mushroom | onion | potato
vanilla | almond | raisin | butter | chestnut | pear | peach | strawberry | rhubarb | parsley | spinach | bean | cabbage | chocolate
coconut | fig | garlic | hazelnut | leek | melon | nettle | oat | turnip | rice | sesame

[dish]
soup | pie | cake | bread | stew | pudding | dumplings | pancakes | biscuits | salad | buns | porridge | noodles | cream | jam | waffles
tea | toast | fritters | custard | rolls | crumble | jelly | muffins | gravy

[place: name to at At]
beach | harbour | market | lighthouse | pond | river | well | bakery | station | bridge | school | crossroads | waterfall | fair / to the @ / at the @ / At the @
forest | orchard | meadow | valley | library | barn | garden | toy shop | greenhouse | cave | clearing | vineyard | old castle / to the @ / in the @ / In the @
hill | island | sand dunes | village green | mountain farm | cliff / to the @ / on the @ / On the @

[season]
spring | summer | autumn | winter

[daypart]
morning | afternoon | evening

[sky]
sunny | rainy | windy | foggy | cloudy | frosty | hot | stormy | mild | grey

[weekday]
Monday | Tuesday | Wednesday | Thursday | Friday | Saturday | Sunday

[day_early]
Monday | Tuesday | Wednesday

[day_late]
Thursday | Friday | Saturday | Sunday

[hour]
one | two | three | four | five | six | seven | eight | nine | ten | eleven | twelve

[month]
January | February | March | April | May | June | July | August | September | October | November | December

[time]
One {season} {daypart}
One {sky} {daypart}
On {weekday} {daypart}
On the first of {month}
The day after the {feast}
Early one {season} morning
Late one {sky} evening
A week before the {feast}
When the {flower} were in bloom
At the end of {month}
One {weekday} in {month}
Just before the {feast}

[feast]
harvest feast | big snow | spring fair | midsummer dance | king's birthday | full moon | apple harvest | lantern parade

[habit]
{hero.He} liked {hobby}, but {hero.he} liked {hobby_out} even more.
{hero.He} had {number} {siblings} and a {size} {colour} {garment}.
{hero.His} favourite thing in the world was {food}.
Every {daypart} {hero.he} went {place.to} to {place_act}.
Everybody knew {hero.him} by {hero.his} {colour} {garment}.
Nobody {home_short} was better at {hobby} than {hero.name}.
For breakfast {hero.name} always ate {food}, and for supper {food}.
In {hero.his} pockets {hero.he} carried {number} {bits} and a {size} {object}.
When {hero.he} grew up, {hero.he} wanted to be a {trade}.
On {day_early}s {hero.he} helped {who}, and on {day_late}s {hero.he} helped {who}.

[home_short]
in the village | in the valley | on that side of the river | in the whole land | under the sun

[hobby]
painting | singing | counting stars | reading | whistling | baking | telling jokes | drawing maps | building towers | dancing | knitting
asking questions | playing the {music} | collecting {bits} | inventing songs | doing sums | folding paper birds | making up words

[hobby_out]
climbing trees | swimming | fishing | flying kites | jumping in puddles | rolling down hills | picking {flower} | chasing the wind
catching frogs | looking for {bits} | riding the pony | running barefoot | skating | rowing | sleeping in the hay | watching the ships

[music]
flute | fiddle | drum | trumpet | harp | piano | guitar | cello | recorder

[siblings]
brothers | sisters | cousins | aunts | goldfish | hens | hamsters | pet snails

[garment]
hat | scarf | coat | cap | sweater | tunic | jacket | vest | cloak | shawl | bow tie | raincoat | waistcoat

[bits]
{colour} {bit}

[bit]
pebbles | buttons | acorns | feathers | shells | stamps | marbles | corks | coins | nails | beads | ribbons | candles | leaves | pencils
berries | tickets | keys | stones | eggs | threads | pins | dice | crayons | labels | wheels | spoons

[place_act]
feed the ducks | count the boats | sing | think | listen to the birds | look for {bits} | wave at the trains | pick {flower}
talk to {who} | practise the {music} | draw | watch the clouds

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
{soup}
{found}

[said]
said | called | whispered | murmured | declared | announced | exclaimed | remarked | muttered | shouted | cried | mumbled | grumbled
stammered | chirped | breathed

[asked]
asked | wondered | inquired | began

[how]
kindly | slowly | bravely | happily | sadly | shyly | proudly | quickly | calmly | brightly | firmly | dreamily | merrily | politely
solemnly | thoughtfully | warmly | with a smile | with a wink | with a sigh | with a nod | at last | after a while | cheerfully | earnestly
wisely | patiently | eagerly | a little later | with shining eyes | nervously | gravely | for the second time

# Scenery. It may stand anywhere.
[sight]
A {trait} {species} in a {colour} {garment} {was_busy} {spot_out}.
Far off, {number} {animals} {rested} {spot_out}.
The air smelled of {food}, {flower} and {smell}.
On the wall hung a {size} {object} and a {colour} {object}.
{Who} walked by with a {size} {object} and {number} {bits}.
Somewhere {who} was playing the {music} {how}.
The clock of {village} struck {hour}, and {number} {animals} {rested} {spot_out}.
Next to the {building} stood a {size} {object}, painted {colour} and {colour}.
In the window of {village} {building} lay {food} and {number} {bits}.
One {colour} cloud had the shape of a {species} with a {object}.
There was talk of {who}, who had bought a {size} {object} in {village}.
{number_cap} {animals} {rested} {spot_out}, and a {species} hummed {how}.
From {village} came the sound of a {music}, {music_two} and {trait} {beasts}.
"{weather_word}," {said} {who} {how}, and ate {food}.

[number_cap]
Three | Four | Five | Six | Seven | Nine | Ten | Eleven | Twelve | Twenty | Some | Many

[music_two]
singing | laughter | hammers | church bells | horses | children | rain

[was_busy]
was reading | was digging | was dozing | was dancing | was looking for {bits} | was peeling {flavour} roots | was drying {flower}
was hanging up a {garment} | was telling a story to {number} {animals} | was mending a {object} | was painting a {object} | stood on one leg

[rested]
rested | danced | argued | slept | sang | waited | played {game} | shared {food} | hid | looked for {bits} | gathered

[smell]
rain | smoke | fresh paint | hay | the sea | soap | cinnamon | wet dog | old books | snow | pine

[weather_word]
It will {weather_verb} | What a {sky} {daypart} | The {season} comes early | Nothing but {sky} days | There is {wind} weather in {village}

# Lost and found.
[lost]
{lost_gift} {lost_joy} {lost_gone} {sight}
  {lost_cry} {lost_search} {lost_meet}
  {lost_found} {lost_thanks} {end_two}

[lost_gift]
{time}, {giver} gave {hero.name} a {size} {hue=colour} {thing=object}.
{time}, {hero.name} bought a {size} {hue=colour} {thing=object} for {number} {bits}.
{time}, {hero.name} won a {size} {hue=colour} {thing=object} at the {feast}.
{time}, {hero.name} got a parcel from {giver}. Inside was a {size} {hue=colour} {thing=object}.

[giver]
Grandmother | Grandfather | Uncle Fred | Aunt Agatha | {who} | a {trait} traveller | a {trait} {species}

[lost_joy]
{hero.He} took it {place.to}, {place.to} and even to bed.
It shone like {colour_like}, and {hero.he} showed it to {who} and {who}.
"This is the {best} {thing} in the world!" {said} {hero.name} {how}.
{hero.name} was so {happy} that {hero.he} {danced}.

[colour_like]
the evening sky | a ripe plum | the first leaf of spring | a new coin | fresh snow | a summer pond | the feathers of a {species}

[best]
best | nicest | finest | loveliest | most wonderful | prettiest

[happy]
happy | glad | proud | pleased | excited | delighted | full of joy

[danced]
danced around the {tree} tree | hugged {who} | jumped over {number} puddles | sang all the way home | forgot to eat {food}
laughed out loud | turned {number} somersaults | ran all the way {place.to}

[lost_gone]
But {soon}, on the way {where=place.to}, the {thing} slipped out of {hero.his} bag.
But {soon} {hero.he} fell asleep {where=place.at}, and when {hero.he} woke up, the {thing} was gone.
But {soon}, after a game of {game} {where=place.at}, {hero.he} could not find the {thing}.
But {soon} a {wind} wind blew {where=place.at}, and it carried the {thing} away.

[soon]
the next day | on {weekday} | one {daypart} | {number} days later | a week later | that same {daypart} | before long

[wind]
strong | cold | sudden | warm | wild | playful | whistling | salty

[game]
hide and seek | leapfrog | catch | cards | marbles | blind man's buff | tag | skipping rope

[lost_cry]
"Oh no!" cried {hero.name}. "Where is my {thing}?"
"{cry}" {hero.he} {said}. "My {hue} {thing}! I must find it before {deadline}."
{hero.name} {wept}. "I have lost my {hue} {thing}," {hero.he} {said} to {who}.

[cry]
Dear me! | How terrible! | Help! | What shall I do? | It cannot be true! | Bother! | Goodness!

[deadline]
dark | supper | Grandmother comes | the rain | {weekday} | the {feast} | bedtime

[wept]
sat down and wept | felt a lump in {hero.his} throat | cried {number} big tears | went pale | did not even want {food}

[lost_search]
{hero.He} looked {spot_in}, {spot_out} and {spot_odd}, but there was only a {size} {object}.
{hero.He} searched {spot_in} and {spot_out}, and found {number} {bits}, but no {thing}.
First {hero.he} looked {spot_in}. Then {hero.he} looked {spot_out}. It was not there.
Was it {spot_in}? No. Was it {spot_out}? No. Was it {spot_odd}? No.

[spot_in]
under the bed | behind the stove | between the cushions | in the cupboard | under the rug | on the top shelf | in the laundry basket
behind the curtain | in the bread box | inside the piano | in the {colour} drawer | under the stairs

[spot_out]
in the woodpile | behind the barn | under the {tree} tree | in the long grass | beside the well | in the haystack | among the {flower}
below the bridge | in the wheelbarrow | on the roof | behind the beehives | along the {river} river

[spot_odd]
in the soup pot | in {who}'s left shoe | in the goose's nest | in the sugar | inside a pumpkin | in the letter box
in {who}'s hat | under a sleeping cow

[lost_meet]
Then {pal=friend.name} the {species} came along. "{why}" {asked} {pal.name}. "Let me help you," {pal.he} {said}.
{pal=friend.name} the {species} heard {hero.him}. "{calm}" {said} {pal.name} {how}. "Two see more than one."
Just then {hero.he} met {pal=friend.name}, a {trait} {species} with {number} {bits}. "I will help you," {said} {pal.name} {how}.

[why]
Why are you so sad? | What is the matter? | Why such a long face? | Who made you cry? | Have you lost something?

[calm]
Do not worry! | Cheer up! | Take a deep breath! | There, there! | Dry your tears! | Leave it to me!

[lost_found]
Together they went back {where.to}. And there, {lay_spot}, lay the {hue} {thing}!
{pal.name} thought for a while. "When did you last see it?" "{where.At}," {said} {hero.name} {how}. They ran there, and {pal.he} found the {thing} {lay_spot}.
They followed the footprints of a {species} {where.to}. There was the {thing}, {lay_spot}, {state}.
Back {where.at}, {pal.name} saw something {hue} {lay_spot}. It was the {thing}, {state}!

[lay_spot]
under a {colour} leaf | between two stones | in a bird's nest | beside a {trait} {species} | in a puddle | behind a {tree} tree
among the {flower} | in {who}'s cart | on top of a fence | next to a {size} {object}

[state]
a little wet | a bit dusty | as good as new | full of sand | covered with leaves | without a scratch | warm from the sun

[lost_thanks]
"Thank you, {pal.name}!" {said} {hero.name}, and gave {pal.him} {food}.
{hero.name} {danced}. Then {hero.he} shared {hero.his} {food} with {pal.name}.
"You are a true friend, {pal.name}," {said} {hero.name} {how}. They ate {food} and {food} together.
To thank {pal.name}, {hero.he} gave {pal.him} {number} {bits} and some {food}.

# A friend in trouble: every trouble has its own cure.
[repair]
{repair_meet} {repair_tell} {sight}
  {repair_idea} {repair_do}
  {repair_done} {end_two}

[repair_meet]
{time}, {hero.name} met {pal=friend.name} the {species} {where=place.at}. {pal.He} looked {sad}.
{time}, {hero.name} heard somebody sigh {where=place.at}. It was {pal=friend.name} the {species}.
{time}, {hero.name} saw {pal=friend.name}, the {trait} {species}, sitting alone {where=place.at}.

[sad]
sad | worried | tired | unhappy | quite lost | upset | gloomy | close to tears

[repair_tell]
"{why_pal}" {asked} {hero.name}. "{problem=trouble.says}," {said} {pal.name} {how}.
"{problem=trouble.says}," {said} {pal.name}, "and it is almost {weekday}!" {hero.name} listened well.
"Good {daypart}, {pal.name}," {said} {hero.name} {how}. "{why_pal}" "{problem=trouble.says}," {pal.he} {said}.

[why_pal]
What is wrong? | Can I help? | Why do you sigh? | Tell me all about it. | Is something the matter? | What has happened?

[trouble: says tool fix done]
My roof leaks / a {colour} ladder and {number} nails / climbed up and nailed down {number} new shingles / Not a drop came through any more
The wheel of my cart is broken / a {size} hammer and some oak wood / carved a new spoke and hammered it in / The cart rolled {place.to} and back
I have torn my best {garment} / a needle and {colour} thread / sewed it up with {number} tiny stitches / Nobody could see where the hole had been
My kite is stuck in the {tree} tree / a long pole and a rope / climbed to the top branch and shook it free / Up and up it flew, over the {building}
I cannot sleep for the cold / {number} blankets and a warm brick / tucked in every corner of the bed / Soon there was a happy snore
There is a mouse in my flour / a piece of cheese and a {size} box / caught the mouse and carried it {place.to} / The mouse sent a postcard later
My boat has a hole in it / a pot of tar and a {size} brush / painted tar over the hole until it was tight / The boat floated like a swan
The path to my door is full of snow / {number} shovels and a broom / shovelled until lunch and swept until supper / The path was as clean as a plate
I have forgotten the words of our song / an old song book and a candle / sang every verse {number} times / Now the whole street was singing
My garden is full of weeds / a rake and a {colour} bucket / pulled up weeds from the gate to the {flower} / The {flower} could breathe again
The door of my house is stuck / a feather and a little oil / oiled every hinge and pushed with all might / The door opened without a squeak
My lamp has gone out / a match and {number} drops of oil / cleaned the glass and lit the wick / The light could be seen from the {building}
I owe {number} letters and cannot write / {number} sheets of paper and {colour} ink / wrote down every word slowly and carefully / {Who} took the letters to the post
The bees have left my hive / a {size} bell and a jar of honey / followed the humming and rang the bell / One by one the bees came home

[repair_idea]
{hero.name} {thought}. Then {hero.he} ran home and fetched {problem.tool}.
"I know what we need," {said} {hero.name}: "{problem.tool}!" They borrowed it all from {who}.
"{calm_pal}" {said} {hero.name} {how}. {hero.He} went to {who} and came back with {problem.tool}.
They asked {who}, who lent them {problem.tool}.

[thought]
scratched {hero.his} head | thought and thought | closed {hero.his} eyes for a moment | counted to {number} | walked around the {tree} tree
looked at the clouds | rubbed {hero.his} nose

[calm_pal]
That is easy! | Wait here! | We can do that! | No trouble at all! | Back in a minute! | Leave it to us!

[repair_do]
All {daypart} they worked. {hero.name} {problem.fix}, and {pal.name} made {food}.
{hero.name} {problem.fix}, while {pal.name} held the {object} and sang.
It took {number} hours. {hero.name} {problem.fix}, and then they rested and ate {food}.
At first it went wrong, and they got {colour} spots on their noses. But then {hero.name} {problem.fix}.

[repair_done]
{problem.done}. "{praise}" {said} {pal.name} {how}.
At last it was finished. {problem.done}, and {pal.name} {danced_pal}.
When the {building} clock struck {hour}, they were done. {problem.done}.

[praise]
You are wonderful, {hero.name}! | What a good job! | I could never have done it alone! | Thank you, dear {hero.name}! | Hurrah for {hero.name}!
Now I can sleep again! | That calls for {food}!

[danced_pal]
clapped and laughed | hugged {hero.name} | turned {number} somersaults | gave {hero.name} a {size} {colour} {object} | put on {pal.his} best {garment}
cried with joy

# A mistake, and how it was mended.
[broken]
{broken_how} {broken_hide} {sight}
  {broken_ask} {broken_tell}
  {broken_mend} {end}

[broken_how]
{time}, {hero.name} broke {elder=owner.his} {hue=colour} {item=breakable} while playing {game}.
{time}, {hero.name} was running through the kitchen when crash! {elder=owner.his} {hue=colour} {item=breakable} lay on the floor.
{time}, {hero.name} only wanted to look at {elder=owner.his} {hue=colour} {item=breakable}. But it slipped and broke into {number} pieces.
{time}, {hero.name} threw a {bit_one}, and it hit {elder=owner.his} {hue=colour} {item=breakable}.

[bit_one]
snowball | ball | pine cone | pebble | pillow | shoe | potato | bean bag

[owner: noun his name Name he said]
Grandmother | Aunt Agatha | Mother | Mrs Finch | Miss Pepper | Cousin Emma / @'s / @ / @ / she / said @
Grandfather | Uncle Fred | Father | Mr Wood | Captain Gull | Brother Paul / @'s / @ / @ / he / said @
baker | miller | teacher | farmer | tailor | beekeeper | clockmaker | ferryman / the @'s / the @ / The @ / he / said the @

[breakable]
teapot | vase | plate | clock | lamp | bowl | window | jug | mirror | flowerpot | cup | picture | sugar bowl | music box | lantern | gravy boat

[broken_hide]
Nobody had seen it. Quickly {hero.he} hid the pieces {spot_in}.
{hero.He} put the pieces {spot_out} and {pretended}.
{hero.His} heart beat like a drum. "I will say it was the {species}," {hero.he} thought.
"If nobody asks, I will say nothing," thought {hero.name}, and {pretended}.

[pretended]
whistled a tune | went to bed without {food} | began to read a book upside down | pretended to sleep | looked at the ceiling | swept the yard

[broken_ask]
At {meal} {elder.name} asked, "Has anybody seen my {item}?" {hero.name} {blushed}.
Soon {elder.name} came in. "Where is my {hue} {item}?" {elder.he} asked. {hero.name} {blushed}.
All {daypart} {hero.name} could think of nothing but the {item}. Even {food} tasted of nothing.
That night {hero.name} could not sleep. The {hue} {item} danced before {hero.his} eyes.

[meal]
breakfast | lunch | supper | tea time

[blushed]
turned as red as a beet | looked at {hero.his} shoes | swallowed hard | felt hot and cold | dropped {hero.his} spoon | could not say a word

[broken_tell]
Then {hero.he} took a deep breath. "It was me," {hero.he} {said}. "I broke it, and I am sorry."
At last {hero.he} {told} and said, "I broke your {item}, and then I hid it. I am so sorry!"
"I must tell the truth," {hero.he} thought, and {hero.he} told {elder.name} everything.

[told]
stood up | ran to {elder.name} | began to cry | fetched the pieces | took {elder.name} by the hand

[broken_mend]
{elder.Name} was quiet for a moment. Then {elder.he} {said}, "{forgive}" Together they glued the {item}, and put {flower} beside it.
{elder.Name} {said} {how}: "{forgive}" They mended it with {colour} glue, and the {item} was {almost}.
{elder.Name} smiled. "{forgive}" Then they ate {food}, and {hero.name} saved {number} coins for a new {item}.
{elder.Name} only {said}, "{forgive}" {hero.name} worked for {number} days in the garden, and bought a {colour} {item} in the {market}.

[forgive]
A {item} is only a {item}. | Thank you for telling me. | I broke one too when I was small. | The truth is worth more than a {item}.
Pieces can be glued. | I knew it, but I waited for you. | That took courage.

[almost]
almost as good as before | more beautiful than ever | a bit crooked, but whole | full of tiny {colour} lines, like a map

[market]
market | toy shop | village | town | next valley

# A journey.
[trip]
{trip_plan} {trip_pack} {sight}
  {trip_go} {trip_see} {trip_see_more}
  {trip_there} {trip_home} {end_two}

[trip_plan]
{time}, {hero.name} and {pal=friend.name} the {species} decided to travel {where=place.to}.
{time}, {pal=friend.name} the {species} knocked at the door. "Let us go {where=place.to}!"
{time}, {hero.name} looked at a map. "I have never been {where=place.to}," {hero.he} {said}. "Come with me, {pal=friend.name}!"

[trip_pack]
They packed {food}, a {size} {thing=object} and {number} {bits}.
Into the {colour} bag went {food}, {food} and a {hue_new} {thing=object}.
"Do not forget the {thing=object}!" {said} {pal.name} {how}. So they took it, and {food} for the way.

[hue_new]
brand new | {colour} | {size} | very old | borrowed

[trip_go]
They went by {ride=vehicle}, and {who} waved goodbye.
First they walked for {number} hours. Then a {trade} took them along by {ride=vehicle}.
They had no {ride=vehicle}, so they went on foot and sang.
"All aboard!" called {who}, and off they went by {ride=vehicle}.

[vehicle]
train | boat | hay cart | balloon | bicycle | sleigh | bus | raft | donkey cart | steamer

[trip_see]
On the way they saw {number} {animals} {doing}.
Soon they came to a bridge. "Who are you?" {asked} a {trait} {species}. "{hero.name} and {pal.name}," they said.
Behind a hill they met a {trade} who was looking for {number} {animals}.
At noon they sat down under a {tree} tree and ate {food}.

[animals]
{trait} {beasts}

[beasts]
sheep | cows | storks | rabbits | ducks | goats | ponies | snails | geese | piglets | swallows | butterflies | foxes | herons | ants
badgers | crickets | donkeys | fireflies | frogs | grasshoppers | hares | hedgehogs | jackdaws | kittens | ladybirds | mice | moths
otters | peacocks | pigeons | puppies | seagulls | sparrows | squirrels | starlings | swans | toads | turtles

[doing]
in a field of {flower} | asleep in the sun | on the roof of a {building} | all in a row | crossing the road | dancing in the rain
reading a newspaper | next to a {size} {object}

[trip_see_more]
Then it began to {weather_verb}, and they hid {spot_wild} until it stopped.
Later they got lost, but a {species} showed them the way.
"Are we there yet?" {asked} {pal.name} {number} times.
When they grew tired, {hero.name} told a story about a {trait} {species}.
Suddenly the road ended. They used the {thing} to cross a {river} stream.

[weather_verb]
rain | snow | hail | thunder | pour | drizzle | blow

[spot_wild]
in a cave | under a {tree} tree | in a barn | below a bridge | in a hollow trunk | under a {size} umbrella | in the tent of a {trade}

[trip_there]
At last they arrived. {where.At} they {fun} and {fun_more}.
"Look!" cried {hero.name}. It was lovely {where.at}. They {fun}, {pal.name} {fun_more}, and {who} gave them {food}.
It was {daypart} when they arrived, and {where.at} they {fun}. Later they {fun_more}.

[fun]
built a castle of stones | flew a {colour} kite | picked {flower} | counted {number} boats | swam in the cold water | danced with a {trade}
listened to the {music} | watched {number} {animals}

[fun_more]
rolled in the grass | bought {food} | wrote a postcard to {who} | found {number} {bits} | learned a song | made friends with a {species}
drew a picture of the {building}

[trip_home]
In the evening they went home, tired and {happy}. The {thing} was full of sand.
On the way home {pal.name} fell asleep, and {hero.name} carried the {thing}.
They came home with {number} {bits}, a {size} {object} and wet feet.
"Home is nice too," {said} {pal.name}, when they saw their {colour} roof again.

# Bad weather.
[storm]
{storm_sign} {storm_warn} {sight}
  {storm_comes} {storm_guest}
  {storm_inside} {storm_after} {end_two}

[storm_sign]
{time}, the sky turned {dark} and the {animals} ran home.
{time}, the wind began to {howl} around the {building}.
{time}, {number} {colour} clouds stood over the {woods}.

[dark]
dark | black as ink | green like a pond | yellow and strange | the colour of lead

[howl]
howl | whistle | sing | groan | roar | rattle

[storm_warn]
"A storm is coming!" called {who}. {hero.name} {prepared}.
"I can smell it," {said} {hero.name} {how}. "It will {weather_verb} before {meal}." {hero.He} {prepared}.
{hero.name} {prepared}, and then {hero.he} {prepared_more}.

[prepared]
closed the {colour} shutters | brought in the washing | lit {number} candles | tied down the {object} | called the hens | fetched wood for the stove

[prepared_more]
made {food} | looked out of the window | counted the candles | hid under the blanket | put a bucket under the roof

[storm_comes]
Then it came. It {raged} for {number} hours.
Boom! went the thunder. The storm {raged}, and {hero.name} {feared}.
Soon the storm {raged}. The {building} lost {number} tiles, and {who} lost a {garment}.

[raged]
shook the {tree} tree | threw {bits} at the windows | blew the {animals} over the fence | tore the {flower} out of the ground
turned the road into a river | bent the trees like grass

[feared]
held the {object} tight | sang as loudly as {hero.he} could | counted to {number} after every flash | hid {spot_in} | was not afraid at all

[storm_guest]
In the middle of it all somebody knocked. It was {pal=friend.name} the {species}, as wet as a fish. "{plea}"
There was a knock at the door, and in came {pal=friend.name} the {species}. "{plea}"
Then {hero.he} heard a small voice outside. It was {pal=friend.name}, a {trait} {species}. "{plea}"

[plea]
My house has blown away! | May I come in? | The river is in my kitchen! | I have lost my way! | My bed is full of rain! | I am afraid of thunder!

[storm_inside]
"Come in, {pal.name}!" {said} {hero.name} {how}. {hero.He} gave {pal.him} a {colour} towel and {food}, and they played {game} all night.
{hero.name} {warmed}, and {pal.name} told stories about {number} {animals}.
"Sit down by the stove," {said} {hero.name}, and {warmed}. Soon they laughed at the thunder.

[warmed]
cooked {food} | dried {pal.his} {garment} by the fire | made a bed of {number} pillows | played the {music} for {pal.him} | shared the last {food}

[storm_after]
In the morning the sun shone, and a rainbow stood over the {building}.
By {meal} the storm was over. They went out and {cleared}.
Next day they {cleared}, and {who} brought them {food}.
When they woke up, all was still, and {number} {animals} {sat} on the roof. They {cleared}.

[cleared]
mended {pal.name}'s house | picked up {number} branches | put the {flower} back into the ground | carried the fence back | swept the street

[sat]
sat | danced | sang | slept

# A contest.
[contest]
{contest_news} {contest_wish} {sight}
  {contest_train} {contest_day}
  {contest_turn} {contest_prize} {end_two}

[contest_news]
{time}, there was a notice at the {building}: "Great {match=event} contest on {weekday}! The prize is a {size} {hue=colour} {thing=object}."
{time}, {who} rang a bell. "Hear, hear! On {weekday} there will be a {match=event} contest. Who wins it gets a {size} {hue=colour} {thing=object}!"
{time}, everybody talked about the {match=event} contest. The winner was to get a {size} {hue=colour} {thing=object}.

[event]
running | baking | singing | swimming | kite | snowman | whistling | jumping | fishing | riddle | pumpkin | sleeping | rowing | sack race
drumming | tree climbing

[contest_wish]
"I want to win that {thing}," {said} {hero.name} {how}. But {pal=friend.name} the {species} was known to be {very_good}.
{hero.name} had always wished for a {thing}. So had {pal=friend.name} the {species}, who was {very_good}.
"You will never win," said {pal=friend.name} the {species}, who was {very_good}. {hero.name} said nothing.

[very_good]
the best for miles around | hard to beat | last year's winner | as strong as {number} {animals} | never tired | very quick

[contest_train]
Every {daypart} {hero.name} practised {place.at}, until {hero.his} {garment} had holes.
{hero.name} asked for advice. {Who} {said} {how}: "{advice}"
For {number} days {hero.he} practised {place.at}, and ate nothing but {food}.

[advice]
Go slowly, then fast. | Keep your eyes open. | Eat {food} first. | Never look back. | Breathe in, breathe out. | Do it with joy.
Practise {number} times a day.

[contest_day]
On the day of the contest the {building} was hung with {flower}, and {number} people came to watch.
Then the day came. {hero.name} wore a {colour} {garment}, and {pal.name} a {colour} one.
"Ready, steady, go!" called {who} at last, and the {match} contest began.

[contest_turn]
Halfway through, {pal.name} {mishap}. {hero.name} stopped at once. "Let me help you," {hero.he} {said}, and so both of them came last.
{hero.name} was in front. But then {pal.name} {mishap}, and {hero.name} went back to help {pal.him}.
{pal.name} was much better. But {hero.name} did not give up, and in the end they were both first.
To everybody's surprise {pal.name} {mishap}, and {hero.name} won by the length of a {bit_thing}.

[mishap]
fell over a {species} | lost a shoe | got the hiccups | began to sneeze | slipped on a {colour} leaf | got a cramp | was stung by a bee

[bit_thing]
nose | spoon | thumb | feather | shoelace | whisker

[contest_prize]
"The {thing} goes to both," {said} {who} {how}. {hero.name} had it on {day_early}s, and {pal.name} had it on {day_late}s.
{Who} gave the {hue} {thing} to {hero.name}, and {hero.name} shared it with {pal.name}.
Nobody cared about the {hue} {thing} any more. {hero.name} and {pal.name} sat {place.at} and ate {food}.
Later a {trait} {species} got the {hue} {thing}. But {hero.name} and {pal.name} had become friends.

# A secret.
[secret]
{secret_find} {secret_read} {sight}
  {secret_follow} {secret_step}
  {secret_chest} {secret_share} {end_two}

[secret_find]
{time}, {hero.name} found a {hue=colour} envelope {spot_in}.
{time}, {hero.name} found a bottle with a {hue=colour} ribbon {lay_spot}.
{time}, {hero.name} pulled an old book out of the shelf, and a {hue=colour} paper fell out.

[secret_read]
On it was written: "{clue}, count {number} steps, and dig."
There was a map in it, with a cross {place.at}. Below it said: "{clue}."
"{clue}," said the paper, "and tell nobody but a friend."

[clue]
Look where the {tree} tree throws its shadow | Follow the {animals} at {deadline_time} | Walk from the {building} to the {river} river
Find the stone that looks like a {species} | Go where the {flower} grow | Ask {who} about the {object}

[deadline_time]
noon | midnight | sunrise | sunset | low tide

[secret_follow]
{hero.name} told only {pal=friend.name} the {species}. At {deadline_time} they set out with a {size} lantern and {food}.
"Can you keep a secret, {pal=friend.name}?" {hero.he} {asked} {hero.his} neighbour, the {species}. "Like a {keeps}," {said} {pal.name} {how}.
That night {hero.he} met {pal=friend.name} the {species} behind the {building}. They whispered and took {number} candles along.

[keeps]
stone | fish | grave mouse | closed door | snowflake | sack of flour

[secret_step]
They counted their steps: one, two, three, up to {number}. A {species} {watched}.
They dug with a {tool} until their hands were {colour} with dirt. A {species} {watched}.
"This must be the place," whispered {pal.name}. They moved {number} stones away.

[tool]
spade | spoon | purse | stick | saucepan lid

[watched]
watched them | called from the {tree} tree | wanted to know everything | fell asleep beside them | held the candle

[secret_chest]
Under it was a {size} chest, and in the chest lay a {colour} {thing=object} and a letter from {giver}.
Then they heard a click. A {size} door opened, and behind it was a garden full of {flower}, with a {colour} {thing=object} in the middle.
There was a tin box. It held {number} {bits}, a {colour} {thing=object} and a note: "{note}"

[note]
The best treasure is the friend who digs with you. | Put something in it for the next one. | Well done! | Laugh often and eat {food}.
Whoever finds this may make a wish.

[secret_share]
They put the {thing} back and added a {colour} {object}, for whoever might come next.
"It is our secret, {pal.name}," {said} {hero.name}, and hid the {hue} paper {spot_out}.
{hero.name} took the {thing}, {pal.name} took the {food_box}, and nobody ever heard of it.

[food_box]
box | map | key | candle | lock | rest

# A present.
[gift]
{gift_why} {gift_poor} {sight}
  {gift_make} {gift_trouble}
  {gift_day} {end}

[gift_why]
{time}, {hero.name} remembered that it would soon be {elder=owner.his} birthday.
{time}, {hero.name} wanted to give {elder=owner.name} a present.
{time}, {hero.name} heard that {elder=owner.name} was turning {age}.

[age]
thirty | forty | fifty | sixty-three | seventy | eighty-one | ninety | a hundred

[gift_poor]
"I have only {number} coins," {hero.he} thought. "I shall make a {size} {thing=object} myself."
In the shop there was a {colour} {object}, but it cost too much. "Then I will make a {thing=object}," {said} {hero.name} {how}.
What could it be? {food_cap}? No. A {object}? No. "A {thing=object}!" cried {hero.name} at last.

[food_cap]
Chocolate | Soap | A hat | A song | Flowers | Socks | A poem | A tame snail

[gift_make]
{hero.He} took {material}, {material_more} and a {colour} ribbon, and worked for {number} days.
From {who} {hero.he} got {material}. At home {hero.he} found {material_more}, and then {hero.he} began.
Every {daypart} {hero.he} sat {spot_secret} with {material} and {material_more}.

[material]
an old tin | two pieces of birch wood | some {colour} wool | a broken clock | a heap of straw | a bit of leather | a sheet of {colour} paper

[material_more]
{number} {bits} | a pot of glue | a box of {bits} | {colour} paint | a long string | {number} feathers | a little gold dust

[spot_secret]
in the attic | behind the barn | in the cellar | under the {tree} tree | in the hayloft | behind the {building}

[gift_trouble]
The first {thing} fell apart. The second looked like a {species}. The third was {good}.
Once the {species} ate half of it, and {hero.he} had to start again. But in the end the {thing} was {good}.
"What are you doing there?" {asked} {elder.name}. "Nothing," {said} {hero.name} quickly, and sat on the {thing}.
It was hard, and {hero.he} pricked {hero.his} thumb {number} times. But the {thing} was {good}.

[good]
just right | better than {hero.he} had hoped | really beautiful | a little crooked, but charming | finished at last | good enough for a queen

[gift_day]
On the birthday {elder.name} opened the {colour} paper. "A {thing}!" {elder.said}. "{gift_word}"
When {elder.name} saw the {thing}, {elder.he} could not speak. Then {elder.he} {touched}. "{gift_word}"
"For you," {said} {hero.name} {how}. {elder.Name} {touched}. "{gift_word}"

[gift_word]
Nobody ever made me anything so fine. | You have golden hands, {hero.name}! | I shall keep it for ever. | I like it better than all the gold in the world.
It is exactly what I wished for! | Now we must eat {food}!

[touched]
laughed and cried at once | hugged {hero.him} | put it on the window sill | showed it to {who} | wiped away a tear

# Learning something new.
[skill]
{skill_see} {skill_try} {sight}
  {skill_teacher} {skill_practice}
  {skill_fall} {skill_can} {end_two}

[skill_see]
{time}, {hero.name} saw {pal=friend.name} the {species} {art=ability.ing} {place.at}. "I want to do that too!"
{time}, {hero.name} was sad, because everybody could {art=ability.base} but {hero.him}. Only {pal=friend.name} the {species} did not laugh.
{time}, {hero.name} said, "Today I will learn to {art=ability.base}." {pal=friend.name} the {species} promised to help.

[ability: base ing]
swim | whistle | juggle | row | float on the back | yodel / @ing
knit | skip / @ting backwards
ride a bicycle / riding a bicycle
skate / skating on the ice
dance the polka / dancing the polka
walk on stilts / walking on stilts
bake bread / baking bread
play the {music} / playing the {music}
tie a bow / tying a bow
write poems / writing poems
read the clock / reading the clock
fly a kite / flying a kite
climb a rope / climbing a rope
stand on one leg / standing on one leg

[skill_try]
But the first time {hero.he} {failed}.
{hero.He} tried it at once, and {failed}.
It looked so easy! But {hero.he} {failed}, and the {animals} laughed.

[failed]
fell into a puddle | landed in the {flower} | got everything wrong | lost a shoe | fell over a {species} | got stuck | turned {colour} in the face
made {who} laugh | gave up after {number} minutes

[skill_teacher]
"Nobody can {art.base} on the first day," {said} {pal.name} {how}. "{advice}"
"I fell {number} times before I could do it," {said} {pal.name} {how}. "{advice}"
{pal.name} gave {hero.him} some {food}. "{advice} And then try again."

[skill_practice]
So {hero.name} practised. {hero.He} practised {place.at}, {place.at} and even in {hero.his} sleep.
On {day_early} {hero.he} practised for one hour, on {day_late} for {number}.
Each {daypart} they met {place.at}, and {pal.name} held {hero.his} hand.

[skill_fall]
{hero.He} got {number} bruises and a {colour} nose, but {hero.he} did not give up.
Sometimes {hero.he} wanted to cry. Then {pal.name} {cheered}.
"I shall never learn it!" cried {hero.name} on {weekday}. But {pal.name} {cheered}.

[cheered]
played the {music} | told a joke about {number} {animals} | clapped at every try | made {food} | stood on {pal.his} head | only smiled

[skill_can]
And then, {suddenly}, it worked! "I can {art.base}!" shouted {hero.name}, so loudly that {who} {heard}.
It was {suddenly} that {hero.name} noticed that {hero.he} could {art.base}. {pal.name} {cheered_end}.
When {month} came, nobody could {art.base} as well as {hero.name}. {pal.name} {cheered_end}.

[suddenly]
one {sky} {daypart} | quite suddenly | on a {weekday} | after {number} weeks | between {meal} and {meal} | when nobody was looking

[heard]
dropped a {object} | woke up | came running | clapped | waved from the window

[cheered_end]
clapped for {number} minutes | was as proud as a king | cooked {food} for everybody | threw {pal.his} {garment} into the air | danced a jig

# Somebody new.
[neighbour]
{neighbour_come} {neighbour_talk} {sight}
  {neighbour_visit} {neighbour_open}
  {neighbour_play} {end_two}

[neighbour_come]
{time}, a {colour} cart stopped next door. A {species} named {pal=friend.name} was moving in.
{time}, smoke rose from the empty house next door. {pal=friend.name} the {species} had come to live there.
{time}, a new {species} came to the school. {pal=friend.intro}.

[neighbour_talk]
"They say {pal.he} {rumour}," {said} {who} {how}. "They say {pal.he} {rumour}," {said} {who} too.
{pal.He} spoke to nobody, and {who} said that {pal.he} {rumour}.
Nobody played with {pal.him}, for people said that {pal.he} {rumour}.

[rumour]
ate {bits} | never washed | could not laugh | came from the moon | slept in the {object} | collected teeth | had {number} toes
was afraid of {flower} | owned a dragon | talked to {animals}

[neighbour_visit]
But {hero.name} thought, "{pal.He} only looks {lonely}." {hero.He} took some {food} and knocked at the door.
{hero.name} wanted to know for {hero.himself}. {hero.He} put on {hero.his} {colour} {garment} and rang the bell.
"{pal.He} looks {lonely}," thought {hero.name}, and wrote a letter: "Dear {pal.name}, do you like {food}?"

[lonely]
lonely | shy | homesick | a little sad | as if {pal.he} needed a friend | like somebody who has lost a {object}

[neighbour_open]
The door opened a crack. {pal.name} {said} {how}: "{new_says}" And {hero.name} {said}: "{hero_says}"
After a while {pal.name} came out. {pal.He} had {number} {bits} in {pal.his} hand. "{new_says}"
{pal.name} turned {colour} and {said} {how}: "{new_says}"

[new_says]
Do you really want to visit me? | Can you play {game}? | Nobody has asked me before. | I miss my old home by the {sea}. | Would you like some {food}?
Is it true that everybody here can {ability.base}?

[hero_says]
I have brought you {food}. | Let us play {game}! | Show me your {thing_any}! | Welcome! | I live next door. | You need a friend.

[thing_any]
{object} | garden | house | room | {colour} {object}

[neighbour_play]
It turned out that {pal.name} could {talent}. Soon {number} children stood in line to see it.
They played {game} until dark. "Tomorrow again?" {asked} {pal.name}. "Tomorrow again!" {said} {hero.name} {how}.
From then on they went {place.to} together every {weekday}, and even {who} said hello to {pal.name}.

[talent]
walk on {pal.his} hands | make {colour} soap bubbles | speak with {animals} | play the {music} with one hand | bake {food} like nobody else
tell {number} stories without a break

# A noise at night.
[night]
{night_noise} {night_fear} {sight}
  {night_go} {night_steps}
  {night_see} {night_then} {end}

[night_noise]
{time}, when it was dark, {hero.name} heard a noise {spot=spot_in}: "{sound=noise}!"
{time}, at midnight, {hero.name} woke up. "{sound=noise}!" it went {spot=spot_in}.
{time}, after {hero.he} had gone to bed, something {spot=spot_in} went "{sound=noise}!"

[noise]
Scratch, scratch | Tap, tap, tap | Whoo, whoo | Crick, crack | Squeak | Rumble, bumble | Plip, plop | Shuffle, shuffle | Hiss | Ding

[night_fear]
{hero.He} pulled the blanket over {hero.his} nose. Was it a {fear=monster}?
"It is a {fear=monster}!" thought {hero.name} and {trembled}.
{hero.name} {trembled}. "There is no such thing as a {fear=monster}," {hero.he} {said} to {hero.himself}.

[monster]
ghost | dragon | robber | witch | giant | troll | wolf with {number} heads | sea monster | skeleton

[trembled]
trembled like a leaf | counted to {number} | held on to a {size} {object} | hid under {number} pillows | did not dare to breathe

[night_go]
"{sound}!" it went again. {hero.name} took a {light} and a {weapon}, and got up.
But {hero.he} wanted to know. {hero.He} lit a {light}, took a {weapon} and went on tiptoe.
"Who is there?" {hero.he} called. "{sound}!" was the answer. So {hero.he} took a {weapon} and went to look.

[light]
candle | lantern | torch | match | night light

[weapon]
broom | wooden spoon | pillow | fishing rod | parasol | frying pan | slipper

[night_steps]
The stairs creaked. The moon shone on the {object}. One step, two steps, {number} steps.
{hero.His} heart beat {number} times as fast as usual. The clock in the {building} struck {hour}.
It was cold, and the shadow of the {object} looked like a {species}.

[night_see]
And there, right {spot}, sat a {size} {beast=species}, with a {object} on its head!
{hero.He} looked {spot}. Two {colour} eyes looked back. It was a {trait} little {beast=species}.
What did {hero.he} see {spot}? A {trait} {beast=species}, eating {food}!

[night_then]
"You gave me a fright!" {said} {hero.name} {how}. "You gave me one too," said the {beast}. They ate {food} and laughed.
The {beast} was only looking for {food}. {hero.name} gave it some, and the {beast} slept at {hero.his} feet.
"So you are my {fear}," laughed {hero.name}, and carried the {beast} {spot_out}, where its mother was waiting.
{hero.name} called the {beast} "{pet}", and from then on it came every {weekday}.

[pet]
Crumb | Button | Moonlight | Mr Midnight | Pepper | Lady Squeak | Socks | Thunder | Pudding | Noodle

# Something that grows.
[seed]
{seed_get} {seed_plant} {sight}
  {seed_wait} {seed_doubt}
  {seed_grow} {seed_share} {end}

[seed_get]
{time}, {hero.name} got a {size} {hue=colour} seed from {giver}.
{time}, {hero.name} found a {hue=colour} seed in {hero.his} {garment}.
{time}, {hero.name} traded a {object} for a {size} {hue=colour} seed.

[seed_plant]
{hero.He} dug a hole {spot_plant}, put in the seed and sang to it.
"What will it be?" {hero.he} wondered, and planted it {spot_plant}, next to the {flower}.
{hero.He} planted it in a {colour} pot, and set the pot {spot_sun}.

[spot_plant]
behind the barn | under the {tree} tree | beside the well | by the {river} river | in front of the {building} | in the garden
where the {flower} grew last year | beside the beehives | on the roof of the {building} | between two {size} stones

[spot_sun]
on the window sill | in the sun | beside the door | on the balcony | next to the {flower}

[seed_wait]
Every {daypart} {hero.he} watered it with a {size} can. On {day_early} nothing happened. On {day_late} nothing happened.
One day passed, two days passed, {number} days passed. {hero.name} {waited}.
{hero.name} {waited}, and {hero.he} {waited_more}.

[waited]
waited | read to it from a {colour} book | played it a song on the {music} | kept away the {animals} | told it about the {feast}

[waited_more]
measured it with a {object} | built a fence of {bits} around it | covered it when it was cold | said good night to it | asked it to hurry

[seed_doubt]
"It is only a pebble," laughed {who}. But {hero.name} did not listen.
The {trait} {species} from next door {said} {how}: "{doubt}" But {hero.name} {said}: "{patience}"
Even {giver} laughed. "{doubt}" But {hero.name} {said} {how}: "{patience}"

[doubt]
It is too cold. | It will never grow. | You should have eaten it. | The {animals} will get it. | That is a button.

[patience]
Good things take time. | It is only sleeping. | I can wait. | I know it will. | Let us see!

[seed_grow]
Then, on a {sky} {daypart}, there was a green tip. It grew and grew until it reached the {height}. It was a {crop=plant.name}!
One {daypart} in {month} it came up, and by {month} it was as high as the {height}: a giant {crop=plant.name}!
After {number} weeks a leaf came out, then {number} leaves, and then a {crop=plant.name} as big as a {species}.

[height]
window | roof | weathercock | {tree} tree | lamp | clouds | top of the {building}

[plant: name dish]
pumpkin / pumpkin soup
beanstalk / a stew of beans
turnip / turnip pie
tomato / tomato salad
strawberry / strawberry cake
sunflower / bread with sunflower seeds
cabbage / cabbage rolls
melon / cold melon
raspberry bush / raspberry jelly
pear tree / pear compote
cucumber / cucumber sandwiches
cornstalk / popcorn

[seed_share]
The whole village came to pull: {who}, {who} and {number} {animals}. That evening all of them ate {crop.dish}.
"We shall have {crop.dish} for everybody!" {said} {hero.name} {how}. Even {who} took {number} helpings.
{hero.name} gave some to {who}, some to the {animals}, and made {crop.dish} from the rest.
In autumn {hero.he} kept {number} {hue} seeds, and gave them to a {trait} {species}.

# Shopping and cooking.
[soup]
{soup_list} {soup_go} {sight}
  {soup_stall} {soup_forget}
  {soup_cook} {end}

[soup_list]
{time}, {elder=owner.name} sent {hero.name} to buy {ware}, {ware_more} and {number} {need=fruit}.
{time}, {hero.name} wanted to cook for {elder=owner.name}. {hero.He} needed {ware}, {ware_more} and {number} {need=fruit}.
{time}, {elder=owner.name} was ill in bed. "I will make you something nice," {said} {hero.name}, and wrote down: {ware}, {ware_more}, {number} {need=fruit}.

[ware]
flour | butter | salt | rice | sugar | milk | oil | vinegar | pepper | yeast | cinnamon | oats

[ware_more]
a {size} cabbage | {number} eggs | a bunch of parsley | a jar of honey | a sack of potatoes | {number} onions | a fat herring | a piece of cheese

[fruit]
apples | pears | plums | lemons | cherries | tomatoes | carrots | beets | radishes | peaches | mushrooms | walnuts

[soup_go]
{hero.He} took the {colour} basket and went, saying it over and over so as not to forget: "{need}, {need}, {need}!"
With a {size} basket and {number} coins {hero.he} went to the market.
On the way {hero.he} met a {trait} {species} and {chatted}.

[chatted]
talked about {number} {animals} | played a round of {game} | admired its {colour} {garment} | told it a joke | listened to its troubles

[soup_stall]
At the market there were {bits}, {colour} {garment_pl} and {number} {animals}. It smelled of {food}.
"Fresh {fruit_more}! Fine {flower}!" called {who}. {hero.name} looked at everything.
A {trade} played the {music}, and {hero.name} listened with {hero.his} mouth open.

[garment_pl]
hats | scarves | coats | caps | boots | tunics | jackets | socks

[fruit_more]
fish | bread | cheese | butter | figs | grapes | beans | turnips

[soup_forget]
When {hero.he} came home, the basket held a {colour} {object} and {number} {bits}, but no {need}! "{cry_soup}" {hero.he} cried.
Then {hero.he} noticed that {hero.his} coins were gone. "I can give you {number} {bits} for the {need}," {hero.he} {said} to {who}, who {nodded}.
But the {need} were sold out. "Take {number} of mine," said a {trait} {trade}, "and bring me a bowl later."
On the bridge {hero.he} stumbled, and the {need} rolled into the water. A {species} {fished} them out again.

[cry_soup]
Oh dear! | How silly of me! | Not again! | Back to the market!

[nodded]
nodded | laughed and agreed | wanted a song as well | said, "And a smile, please!"

[fished]
fished | helped to get | swam and brought

[soup_cook]
At home the pot bubbled. In went the {need}, and out came {food}. {elder.Name} ate {number} plates of it.
Then {hero.he} stirred and tasted, stirred and tasted, until it was {food}. "{tasty}" {elder.said}.
With the {need} {hero.he} made {food} for {elder.name}. The whole street smelled of it, and {number} neighbours came to eat.

[tasty]
Delicious! | It wants a little salt, but it is splendid! | Who taught you that? | I feel better already! | More, please!

# A strange find, and whose it was.
[found]
{found_what} {found_ask} {sight}
  {found_one} {found_two}
  {found_owner} {found_end} {end_two}

[found_what]
{time}, {hero.name} stumbled over a {size} {hue=colour} {thing=object} {place.at}.
{time}, {hero.name} fished a {size} {hue=colour} {thing=object} out of the {river} river.
{time}, {hero.name} saw that a {size} {hue=colour} {thing=object} was hanging in the {tree} tree.

[found_ask]
It was {state_found}. "Whose is it?" {hero.he} wondered.
Somebody had scratched the number {number} into it. "I will find the owner," {said} {hero.name} {how}.
{hero.He} would have liked to keep it. But somewhere somebody was surely looking for it.

[state_found]
wet | full of {bits} | still warm | wrapped in a {colour} {garment_one} | nearly new | quite old

[garment_one]
scarf | cap | sock | handkerchief

[found_one]
{hero.He} asked {who} first. "Mine is {colour}," was the answer, "and much {bigger}."
First {hero.he} went {place.to} and asked a {species}. "I have never owned a {thing}," it said.
"Is this your {thing}?" {hero.he} asked {who}. "No," was the answer, "I only have {number} {bits}."

[bigger]
bigger | smaller | older | prettier | rounder | louder

[found_two]
Then {hero.he} asked {number} {animals}, but they only {animals_do}.
A {trait} {species} said it was hers. "What colour is it inside?" {asked} {hero.name}. "{guess}!" But that was wrong.
Next {hero.he} nailed a note to the {building}: "Found: one {thing}. Ask for {hero.name}." {number_days} days went by.

[animals_do]
shook their heads | went on eating | laughed | wanted to know if one could eat it | ran away

[guess]
Black | Pink | Striped | Spotted | Gold | Plaid

[number_days]
Two | Three | Four | Five | Six

[found_owner]
At last {pal=friend.name} the {species} came along, looking {sad}. "I have lost my {thing}," {pal.he} sighed. "Is it {hue}?" {asked} {hero.name}. "Yes!" cried {pal.name}.
In the evening {hero.he} heard somebody cry {place.at}. It was {pal=friend.name} the {species}. "My {hue} {thing} is gone," {pal.he} {said}. "Here it is!" {said} {hero.name} {how}.
On {weekday} {pal=friend.name} the {species} knocked at the door. "Have you seen a {hue} {thing}? It was a present from {giver}." {hero.name} {smiled}.

[smiled]
smiled and fetched it | nodded and gave it to {pal.him} | held it up | had it behind {hero.his} back

[found_end]
{pal.name} {danced_pal_end}, and from that day the {thing} belonged to both of them.
"How can I thank you?" {asked} {pal.name}. "With {food}," laughed {hero.name}.
{pal.name} showed {hero.him} what the {thing} could do: {wonder}.

[danced_pal_end]
danced | jumped for joy | laughed and cried | sang | could not believe it

[wonder]
it made {animals} fall asleep | it played a tune when the wind blew | it shone in the dark | it smelled of {food} | it kept every secret
it made {flower} grow

# Endings.
[end_two]
{moral_two}
{bed}
And if you go {place.to} today, you can still see {hero.name} and {pal.name}, {together}.
Ever since, {hero.name} and {pal.name} have been {friends}.
"{goodbye}, {pal.name}!" {said} {hero.name} {how}. "{goodbye}, {hero.name}!" {said} {pal.name} {how}.

[together]
eating {food} | playing {game} | feeding {number} {animals} | laughing at {who} | looking for {bits}

[friends]
the best of friends | friends | like two {beans} | as close as {number} {animals}

[beans]
peas in a pod | shoes | birds on a branch | spoons in a drawer

[goodbye]
Good night | See you tomorrow | Until {weekday} | Sleep well | Farewell

[moral_two]
So they learned that {moral}.
From this {hero.name} learned that {moral}.
"You see," {said} {who}, "{moral}."

[moral]
a trouble shared is half a trouble | a friend is worth more than a {object} | it is good to ask for help | small hands can do big things
kindness comes back | nobody is too small to help | joy grows when you share it | every road is short with a friend

[end]
{moral_one}
{bed}
{Who} still tells this story every {weekday}, and {number} {animals} listen.
Ever since, {hero.name} has been known as "{hero.name} the {title}".

[title]
Brave | Honest | Wise | Patient | Generous | Clever | Kind | Great | Curious

[moral_one]
So {hero.he} learned that {moral_own}.
"Well," thought {hero.name}, "{moral_own}."
And {who} said, "Remember, {moral_own}."

[moral_own]
the truth is lighter than a lie | patience brings {flower} | what you give comes back | courage is being afraid and going on
every mistake can be mended | he who laughs sleeps well | good things take time | little by little the {animals} cross the hill

[bed]
That night {hero.name} dreamed of {dream}.
In the evening {hero.he} {bedtime} and fell asleep at once.
Then the moon rose over the {building}, and {hero.name} {bedtime}.

[dream]
{number} {animals} | a {colour} {object} | a house made of {food} | flying over the {building} | a {trait} {species} | an ocean of {flower}

[bedtime]
drank a cup of warm milk | closed the {colour} curtains | put the {object} beside the bed | blew out the candle | counted {number} stars
hummed a song
)";

}  // namespace maki
