"""Story plots, first half: things lost, found, shared, broken and made.

A plot is a list of sentence templates in the language of `corpus_grammar`.
Slots come from `corpus_words.story_slots`: ``n`` is the hero, ``fn`` the
friend, ``elder`` a grown-up. A plot tells one chain of cause and effect and
returns to its own things, because that is what a reader sees as sense.
"""

# One template stands on one line, however long it is.
# ruff: noqa: E501

LOST_THING = [
    "[N] had a [thing]. {[He] took it everywhere|It was [his] favourite thing|[He] loved it very much}.",
    "{One [weather] day|One morning|One afternoon}, the [noun] was gone. {[N] looked under the table and behind the chair|[N] looked in every room|[N] looked here and there}, but [he] could not find it.",
    "{[N] began to cry|[N] was very sad|Big tears ran down [his] face}.",
    "{Then [his] friend [fn] came by|[His] friend [fn] heard [him]}. \"{What is wrong|Why are you sad}, [n]?\" {asked [fn]|[fhe] asked}.",
    "\"{I lost my [thing]|I cannot find my [noun]|My [noun] is gone},\" said [n].",
    "\"{Do not worry|Do not be sad|Do not cry},\" said [fn]. \"{We will find it together|I will help you|Let us look for it together}.\"",
    "They {went to|looked in|walked to} the [place] {first|and looked around|and asked everyone}. {It was not there|They found nothing}. Then they went to the [place2].",
    "{Suddenly|At last|After a while}, [fn] saw something [colour] [hiding]. {It was the [noun]|\"Here is your [noun]!\" [fhe] called}!",
    "[N] was {so|very} happy. [He] gave [fn] a big hug and said, \"{Thank you|Thank you, my friend|You are the best friend}!\"",
    "{From that day on, [n] took good care of the [noun]|That night, [n] slept with the [noun] next to [him]|After that, they played with the [noun] together}.",
]

SHARING = [
    "One [weather] day, [n] had a {big|sweet|fresh} [food]. [He] {sat down|found a place to sit} near the [place] {to eat it|and wanted to eat it all}.",
    "{Then|Soon} [fn] came along. [Fhe] looked {tired and hungry|very hungry|a little sad}. \"{I have had nothing to eat today|I forgot my lunch at home|I lost my lunch},\" said [fn].",
    "[N] looked at the [food]. {It was [his] favourite food|It smelled so good}. [He] {did not want to share at first|thought for a moment}.",
    "{But then|Then} [he] saw the sad face of [fn]. [He] {broke|cut} the [food] into two parts and gave {one part|the bigger part|one half} to [fn].",
    "\"{Here, this is for you|Let us share it|You can have this},\" said [n]. \"{Thank you|Oh, thank you|How kind you are}!\" said [fn] {with a smile|and smiled}.",
    "They sat {in the sun|under a tree|side by side} and ate {together|every bit of it}. {It tasted better than ever|The [food] was good, but having a friend was even better}.",
    "{The next day|A few days later}, [n] was hungry, and [fn] {brought [him] a [food]|shared [fhis] lunch with [him]}.",
    "{[N] learned that sharing makes two people happy|Since then, they share everything|And so they became best friends}.",
]

DARK_NIGHT = [
    "{But [n] was afraid of the dark|There was one thing that [n] did not like: the dark|Every night, [n] was afraid of the dark}.",
    "One night, {the wind was loud|there was a storm|the lights went out}. [N] {sat up in bed|hid under the blanket|held [his] pillow tight}. \"{What was that|Who is there|What is that sound}?\" [he] {asked in a small voice|whispered}.",
    "{Something went tap, tap, tap at the window|There was a strange sound outside|A big shadow moved on the wall}.",
    "[N] called for [his] [elder]. [His] [elder] came in and sat {next to [him]|on the bed}. \"{Let us look together|We can find out what it is|Let us be brave together},\" [ehe] said.",
    "They {took a small lamp|lit a candle|held hands} and {looked out|went to the window|looked around the room}. {It was only a branch of the tree|It was only the cat from next door|It was only the wind}!",
    "[N] {laughed|began to laugh|had to smile}. \"{That is not scary at all|I was afraid of nothing|It is just a little noise},\" [he] said.",
    "[His] [elder] {showed [him] the stars|sang a soft song|told [him] a story about the moon} until [he] {felt safe|was calm|closed [his] eyes}.",
    "{Soon [n] was asleep|After that, [n] slept well}. {From then on, the dark was not so dark any more|And [he] was never so afraid again|In the morning, [he] felt very brave}.",
]

HURT_ANIMAL = [
    "One [weather] {day|morning}, [n] was {walking|playing} near the [place] when [he] heard a {small|sad|soft} sound.",
    "{[Hiding], [he] found a little [animal]|There was a little [animal] [hiding]}. {It was hurt and could not move well|It had hurt its leg|It was cold and alone}.",
    "\"{You poor thing|Oh dear|Do not be afraid, little [animal]},\" said [n]. \"{I will help you|I will take care of you}.\"",
    "[He] {carried the [animal] home in [his] arms|put the [animal] into a box with a soft blanket|wrapped the [animal] in a warm scarf} and {showed it to [his] [elder]|asked [his] [elder] what to do}.",
    "\"{It needs food, water and rest|It needs a warm place|We must be gentle},\" said [his] [elder]. {Together they made a soft bed for it|They gave it some water and food}.",
    "Every day, [n] {fed the little [animal]|talked to the little [animal]|looked after the little [animal]}. {Slowly|Day by day|Little by little}, it got {better|stronger}.",
    "After [many] days, the [animal] was well again. [N] {took it back to the [place]|opened the door} and {let it go|said goodbye}. {[He] was a little sad, but also proud|It was hard to say goodbye}.",
    "{But the [animal] did not forget [him].|And what happened next?} {Every morning, it came to the window to say hello|The next day, it came back to visit [him]}. {They stayed friends for a long time|[N] had a new friend}.",
]

BROKEN_THING = [
    "One day, [n] was {running|jumping|playing} {in the house|in the living room}, {although [his] [elder] had said no|even though it was not allowed}. {Crash|Bang|Oh no}! {The [colour] vase fell down|[He] hit the [colour] cup on the table} and broke.",
    "[N] {was afraid|felt bad|did not know what to do}. \"{What will [elder] say|What should I do now}?\" [he] thought. {[He] hid the pieces behind the door|[He] wanted to run away}.",
    "{At dinner|In the evening}, [his] [elder] asked, \"{Do you know what happened here|Who broke this|Why are you so quiet}?\"",
    "[N] {looked at the floor|felt [his] face turn red|was quiet for a moment}. {It was hard to tell the truth|[He] wanted to say that the cat did it}. But then [he] said, \"{I did it|It was me|I broke it}. {I am sorry|I am so sorry}.\"",
    "[His] [elder] {was quiet, and then smiled|took [his] hand|sat down next to [him]}. \"{Thank you for telling the truth|It was brave to tell the truth|I am glad that you told me},\" [ehe] said. \"{We can fix it|Things can break, but the truth must not|Next time, play outside}.\"",
    "Together they {picked up the pieces|took some glue} and {put them back together|fixed it as well as they could}.",
    "{It did not look new, but [n] liked it even more|You could still see the lines, but nobody minded}. {[N] learned that telling the truth makes the heart light|And from that day on, [n] always told the truth}.",
]

GROWING = [
    "One day in spring, [his] [elder] gave [n] a {tiny|small|little} seed. \"{Put it into the ground and wait|If you take care of it, something will grow},\" [ehe] said.",
    "[N] {made a small hole|dug a small hole} in the garden, put the seed in and gave it some water. {Then [he] sat down and waited|[He] waited the whole day}. {Nothing happened|But nothing happened}.",
    "\"{Why does it not grow|Where is my flower|Is it asleep}?\" asked [n]. \"{You have to wait|Good things take time|Be patient},\" said [his] [elder].",
    "{Every day, [n] gave it water|Every morning, [n] looked at the ground}. {The sun was warm and the rain was soft|Some days it rained, and some days the sun was warm}.",
    "{One friend, [fn], laughed and said, \"There is nothing there.\" But [n] did not give up.|[His] friend [fn] came to look, too. \"Maybe tomorrow,\" said [fn].}",
    "{Then one morning|After [many] weeks}, there was a {small|tiny} green leaf! [N] {jumped with joy|called everyone|could not stop smiling}.",
    "{Week after week|Day by day}, the plant grew {taller|bigger|higher} {until it was as tall as [n]|until it had a big [colour] flower}. {All the bees came to visit it|Everyone came to see it}.",
    "\"{You were patient|You took good care of it|You did not give up},\" said [his] [elder]. [N] {was proud|smiled}. {In autumn, [he] had many new seeds to share with [fn]|[He] kept one seed for the next spring}.",
]

BUILDING = [
    "One [weather] day, [n] and [fn] {wanted to build|decided to build|had an idea: they would build} {a tower|a castle|a boat|a tree house|a bridge}{ near the [place]| in the garden|}.",
    "\"{I know how to do it|Let me do it alone|I want to be the leader},\" said [n]. \"{No, I want to do it my way|But I have a better idea|I can do it better},\" said [fn].",
    "{They did not listen to each other|Each of them worked alone}. {So everything fell down|Soon everything fell down with a loud crash}.",
    "[N] {was angry|sat down and did not say a word}, and [fn] {was angry, too|went to the other side}. {A little [animal] watched them and waited|For a while, it was very quiet}.",
    "{Then [n] said, \"I am sorry. Your idea is good, too.\"|At last, [fn] said, \"Maybe we should work together.\"} {They smiled at each other|They shook hands}.",
    "[N] {carried the wood|held the big parts|found strong stones}, and [fn] {put the parts together|made everything straight|brought a long rope}. {They worked until the evening|They worked all day and sang a song}.",
    "When it was {done|finished}, {it was strong and tall|it did not fall down, not even in the wind}. They put {a [colour] flag|the [thing]} on top.",
    "\"{Look what we made|We did it|Together we can do anything}!\" {they said|they called}. {[N] learned that two heads are better than one|And they sat there and watched the sun go down}.",
]

RAINY_DAY = [
    "{One day, it rained and rained|It was a rainy day}. [N] {looked out of the window|stood at the window|sat at the window}. \"{I wanted to go to the [place]|I cannot play outside|There is nothing to do},\" [he] said {sadly|with a sigh}.",
    "\"{A rainy day can be fun, too|We can have an adventure at home|Use your imagination},\" said [his] [elder].",
    "{So [n] thought and thought|[N] looked around the room}. {[He] took a blanket and two chairs and made a tent|[He] found a big box and made a ship|[He] took some pillows and built a castle}.",
    "{Then there was a knock at the door|Ding dong, someone was at the door}. It was [fn], {with a wet coat|all wet from the rain} and a [thing]. \"{May I play with you|Can I come in}?\" [fhe] asked.",
    "\"{Come in|Yes, please},\" said [n]. \"{You can be the captain|You can be the queen of the sea|You can be a pirate|You can be a lost explorer}.\"",
    "They {sailed over the wide sea|found a secret island|looked for gold|met a friendly dragon}{, and the rain was the music|, and the floor was the water|}. {They laughed so much that they forgot the time|Time went by very fast}.",
    "[His] [elder] brought them {warm milk and a [food]|hot chocolate|a [food] for each of them}. {\"You are great sailors,\" [ehe] said|\"Hungry heroes need to eat,\" [ehe] said}.",
    "{When they looked out again, the rain was gone and there was a rainbow|In the evening, the sun came out}. \"{I hope it rains again tomorrow|Rainy days are the best},\" said [n], {and everyone laughed|and [fn] laughed}.",
]

BIRTHDAY = [
    "{It was the birthday of [n]|Today was a special day: it was the birthday of [n]}. [He] was [many] years old. {[He] woke up early|[He] jumped out of bed} and {ran down|looked around}.",
    "But {nobody was there|the house was quiet}. {There was no cake and there were no presents|Nobody said a word about the birthday}. \"{Did they forget|Has everyone forgotten my birthday}?\" [he] thought.",
    "[N] went to the [place] {alone|to find [his] friends}. {[He] saw [fn], but [fn] ran away.|[Fn] was there, but [fhe] said, \"I have no time today.\"} [N] {felt very sad|was sad}.",
    "{Slowly, [he] walked home|With a heavy heart, [he] went home}. {It was dark inside|[He] opened the door}. {Suddenly|Then}, the lights went on and everyone called, \"{Surprise|Happy birthday, [n]}!\"",
    "[Fn] was there, and [his] [elder], and {all the neighbours|all [his] friends}. There was a big cake with [many] candles. \"{We did not forget|We wanted to surprise you},\" said [fn] {with a big smile|and laughed}.",
    "[N] {blew out the candles|made a wish} and opened {the presents|a box}. {In it was|There was} a [thing]! \"{It is just what I wanted|I love it|Thank you, everyone},\" [he] said.",
    "They {danced and sang|played games|ate cake} until {it was late|the moon came out}. {It was the best birthday ever|[N] fell asleep with a smile}.",
]

BAKING = [
    "One morning, [n] and [his] [elder] wanted to {bake a cake|bake some cookies|make a pie}. {\"Can I help?\" asked [n]. \"Of course,\" said [his] [elder].|[N] put on a [colour] hat and washed [his] hands.}",
    "They took {flour, butter and sugar|flour, milk and sugar}. But when [n] looked for the eggs, {there were none|the basket was empty}. \"{Oh no|What now}?\" {said [n]|asked [n]}. \"{We cannot bake without eggs|We need eggs}.\"",
    "\"{Go and ask [fn]|Maybe [fn] can help us},\" said [his] [elder]. So [n] {ran|walked} {to the house of [fn]|over to [fn]}. \"{Do you have some eggs|Can we have some eggs, please}?\" [he] asked.",
    "\"{Yes, I have [many] eggs|I have just enough},\" said [fn]. \"{But may I help you|May I come with you}?\" \"{Yes, come along|Of course},\" said [n]. {They walked back very carefully|They carried the eggs very carefully}.",
    "{They mixed everything in a big bowl|They put everything into a big bowl and mixed it}. {There was flour on the floor and on [his] nose|[Fn] had flour in [fhis] hair}. {Everyone laughed|They laughed a lot}.",
    "{Soon|After a while}, the whole house smelled {wonderful|sweet|so good}. \"{Is it ready|When can we eat}?\" asked [fn]. \"{Not yet. It is still too hot|Wait a little},\" said [his] [elder].",
    "{At last|Finally}, they sat at the table and ate. {It was soft and warm|It was the best they had ever had}. {[N] gave the last piece to [fn]|They saved a piece for the neighbour}. {\"Next time, we will make two,\" said [n]|And nothing was left}.",
]

PLOTS = {
    "lost": LOST_THING, "sharing": SHARING, "dark": DARK_NIGHT, "hurt": HURT_ANIMAL,
    "broken": BROKEN_THING, "growing": GROWING, "building": BUILDING, "rain": RAINY_DAY,
    "birthday": BIRTHDAY, "baking": BAKING,
}
