"""Story plots, second half: journeys, lessons, wishes and small wonders.

See `corpus_plots` for how a plot is written.
"""

# One template stands on one line, however long it is.
# ruff: noqa: E501

RACE = [
    "{[N] was very fast and liked to tell everyone about it|[N] could run faster than anyone, and [he] was very proud of it}. \"{Nobody can beat me|I am the fastest of all},\" [he] said.",
    "[Fn] was {slow|not so fast}, but [fhe] never gave up. \"{Let us have a race|I will race you},\" said [fn]. {Everyone laughed|[N] laughed}. \"{You? Against me|Are you sure}?\" [he] asked.",
    "{The next day|On a [weather] morning}, they met at the [place]. The way went to the [place2] and back. \"{One, two, three, go|Ready, steady, go}!\" called [his] [elder].",
    "[N] ran {like the wind|as fast as [he] could} and was soon far ahead. \"{This is too easy|I have so much time},\" [he] thought. {So [he] sat down under a tree and ate a [food]|So [he] lay down in the grass for a little sleep}.",
    "[Fn] {did not stop|went on and on, step by step}. {[Fhe] passed the tree very quietly|[Fhe] was tired, but [fhe] went on}.",
    "{When [n] woke up|When [n] looked up again}, [fn] was almost {there|at the end}. [N] {jumped up and ran|ran as fast as [he] could}, but it was too late. [Fn] had won!",
    "{Everyone cheered|The others clapped their hands}. [N] was {sad|angry} {for a moment|at first}, but then [he] {shook hands with [fn]|went to [fn]}. \"{You won because you did not give up|Well done},\" [he] said.",
    "{[N] learned not to laugh at others|From that day on, [n] was still fast, but not so proud}. {And they often ran together, side by side|And [fn] got a [thing] as a prize}.",
]

LEARNING = [
    "[N] wanted to learn how to {ride a bike|swim|whistle|skate|play the drum}. {All [his] friends could do it|[Fn] could do it very well}, but [n] could not.",
    "{The first time, it went wrong|[He] tried it once, and it went wrong}. {[He] tried again, and it went wrong again|[He] tried it [many] times}. \"{I will never learn it|It is too hard|I give up},\" [he] said and {threw [himself] on the grass|sat down}.",
    "[Fn] {came and sat next to [him]|saw it}. \"{I could not do it at first|It took me many weeks|Everyone starts small},\" {said [fn]|[fhe] said}. \"{Let me show you|Try it once more, and I will help you}.\"",
    "{So they practised every day after school|Every afternoon, they met at the [place] and practised}. {Some days were good, and some days were bad|[N] made many mistakes, but [he] learned from each one}.",
    "{Then one [weather] day|One day}, something changed. {Suddenly, it was easy|It just worked}! \"{Look, I can do it|I am doing it}!\" called [n]. [Fn] {clapped [fhis] hands|cheered}.",
    "[N] {ran home|hurried home} {to show it to [his] [elder]|and told [his] [elder]}. \"{I am so proud of you|I knew that you could do it},\" [ehe] said.",
    "{And do you know what happened next?|A few weeks later, someone new came along.} {[N] helped another child to learn it, too|[N] saw a small child who could not do it. \"Let me show you,\" [he] said}.",
]

LOST_WAY = [
    "One day, [n] {followed a [colour] butterfly|followed a little [animal]} {into the forest|deep into the forest}. {It was so pretty that [he] forgot the way|[He] did not look where [he] went}.",
    "{When [he] looked around, [he] did not know where [he] was|Soon all the trees looked the same}. \"{Where am I|How do I get home}?\" [he] asked. {Nobody answered|Only the wind answered}.",
    "[N] {was scared|wanted to cry}, but then [he] {remembered the words of [his] [elder]|thought of [his] [elder]}: \"{If you are lost, stay calm and think|When you are lost, follow the water}.\"",
    "{[He] sat down on a stone and listened|So [he] took a deep breath and listened}. {Far away, [he] could hear the river|There was the sound of water}. {An old owl looked down from a tree. \"Follow the river,\" said the owl.|A friendly frog said, \"The river goes to the village.\"}",
    "\"Thank you,\" said [n]. [He] walked {along the water|next to the river} {for a long time|until [his] feet were tired}. {The sun went down, and the first stars came out|It was getting dark}.",
    "{At last|Then}, [he] saw a light. It was {the lamp of [fn], who was looking for [him]|[his] [elder] with a lamp}! \"{There you are|We were so worried}!\" {called a happy voice|they said}.",
    "[N] {ran into warm arms|was so happy to be home}. {There was hot soup on the table|At home, there was warm soup}. \"{Next time, I will look where I go|I will not go so far alone},\" said [n].",
    "{That night, [he] dreamed of a wise old owl|And [he] never forgot the sound of the river}.",
]

NEW_FRIEND = [
    "One day, someone new came to the {school|village}. {It was a [fkind] named [fn]|The new [fkind] was called [fn]}. [Fn] {sat alone|stood alone at the wall} and did not {talk to anyone|say a word}.",
    "\"{Why does [fhe] not play with us|Is [fhe] angry|Maybe [fhe] does not like us}?\" {the others asked|asked some of the others}. But [n] {thought about it|remembered how it feels to be alone}.",
    "[He] {took [his] [thing]|picked up [his] [noun]} and went over to [fn]. \"Hello, my name is [n],\" [he] said. \"{Would you like to play with me|Do you want to see my [noun]|Do you like to [hobby]}?\"",
    "[Fn] looked up. {\"I am new here and I do not know anyone,\" [fhe] said quietly|\"I was afraid that nobody would like me,\" [fhe] said}. \"{Now you know me|Now you have one friend},\" said [n].",
    "{They played all day|They talked and laughed the whole day}. {[Fn] knew many funny games|[Fn] could tell the best stories}, and soon {the others wanted to play, too|everyone came to listen}.",
    "{When it was time to go home|In the evening}, [fn] {gave [n] a small stone that looked like a heart|waved for a long time}. \"{See you tomorrow|Thank you for today},\" [fhe] said.",
    "{\"It is easy to make a friend,\" [n] told [his] [elder]. \"You only have to say hello.\"|And so one small hello was the start of a long friendship.}",
]

GREEDY = [
    "{[His] [elder] had made a big plate of [treat] for everyone|There was a big plate of [treat] on the table for the evening}. \"{Please wait until the others are here|Please do not eat it yet},\" said [his] [elder] and went out.",
    "[N] {looked at the plate|came closer}. It smelled so {good|sweet}. \"{Just one little bite|Nobody will see if I take one},\" [he] thought. {So [he] took one|[He] took a small one}. Then another. And then another, {until nothing was left|until the plate was empty}.",
    "{Soon|After a while}, [his] tummy {began to hurt|hurt very much}. [He] {lay down on the floor|held [his] tummy} and {felt sick|could not move}.",
    "{Then the door opened, and [fn] and the others came in|When the others came, they were hungry}. \"{Where is the food|Where are the [treat]}?\" asked [fn]. {Everyone looked at [n]|[N] had crumbs on [his] nose}.",
    "\"{I ate it all|It was me},\" said [n]. \"{I am so sorry|I am sorry. It was not fair}.\" [Fn] {was angry for a moment|looked sad}, but then [fhe] said, \"{We can make some more|You can help us to make new ones}.\"",
    "{So [n] got up and helped|[N] washed the plate and helped} to make new [treat]. {This time, [he] took only one|This time, [he] gave the first one to [fn]}.",
    "{They tasted much better than before|And [n] found that sharing tastes best of all}. {[He] never ate everything alone again|[His] [elder] smiled and said nothing}.",
]

WISH = [
    "One night, [n] {could not sleep|sat at the window}. {The moon was big and round|The stars were bright}. {Suddenly, a star fell from the sky|A little light came down from the stars} and landed {in the garden|near the [place]}.",
    "[N] {ran out|went outside} in [his] {pyjamas|socks}. {There was a tiny star in the grass|A small star lay [hiding]}. \"{Please help me|I fell down},\" said the star. \"{I want to go home|I miss my mother, the moon}.\"",
    "\"{How can I help you|What can I do}?\" asked [n]. \"{Take me to the highest hill|Throw me as high as you can},\" said the star. \"{Then the wind will carry me|Then I can fly again}. And you may have one wish.\"",
    "[N] {put the star into [his] pocket|took the star in both hands}. {It was warm|It was as light as a feather}. {[He] called [fn], and together they climbed the hill|[He] walked up the hill in the dark, and the star was [his] lamp}.",
    "On the top, [n] {held the star up|said goodbye}. The wind came, and {whoosh|up and up} it went. \"{What is your wish?|Now tell me your wish,}\" {called the star|said a voice from above}.",
    "[N] thought {of a [thing]|of toys and cakes}. But then [he] said, \"{I wish that everybody has a friend|I wish that nobody is alone tonight|I wish that we meet again}.\"",
    "{The star smiled and became very bright|High up in the sky, the star began to shine}. {And when you look up at night, you can still see it|Since then, it shines over the house of [n] every night}.",
]

SNOW = [
    "{One winter morning, everything was white|When [n] woke up, there was snow everywhere}. \"{Snow|It is snowing}!\" [he] called. [He] put on [his] {warm coat|boots} and [colour] {scarf|hat} and ran outside.",
    "[Fn] was {already there|there, too}. \"{Let us build a snowman|We can make a snowman},\" said [fn]. They {rolled a big ball, a middle ball and a small ball|made three big balls of snow}.",
    "They used {two stones for the eyes|buttons for the eyes} and a carrot for the nose. [N] gave the snowman [his] [colour] {scarf|hat}. \"{Now he is not cold|Now he looks like a real person},\" [he] said.",
    "{\"Good morning,\" said the snowman. They could not believe it|Suddenly, the snowman smiled at them}! {They danced around him and sang|They told him stories until the evening}.",
    "But {after [many] days|then} the sun {came out|became warm}, and the snowman {got smaller and smaller|began to melt}. \"{Please do not go,|What can we do?}\" said [n] {sadly|with tears in [his] eyes}.",
    "\"{Do not be sad|I will come back},\" said the snowman. \"{I will be a river, and then a cloud, and next winter I will be snow again|When the snow comes back, I will come back, too}.\"",
    "{[N] kept the scarf in a box|[N] and [fn] waited the whole year}. {And when the first snow fell, they knew what to do|And next winter, there he was again, with a big smile}.",
]

TREASURE = [
    "One day, [n] found an old {map|piece of paper} [hiding]. {There was a red cross on it|It showed the way to a treasure}! [He] showed it to [fn]. \"{It is a treasure map|We must find it},\" {said [fn]|[fhe] said}.",
    "They {packed a [food] and some water|took a lamp and a rope} and {started|went off}. {First, they walked to the [place]|The map led them to the [place]}. Then they had to {go over a small bridge|count [many] trees}.",
    "{A big dog stood in the way. \"I am afraid,\" said [fn]. But [n] {had an idea|was brave}. [He] gave the dog something to eat, and it let them pass|A deep river was in the way. \"We have to go back,\" said [fn]. But [n] had an idea. They made a bridge from an old tree}.",
    "{At last, they came to the place with the cross|Then they stood where the cross was}: {it was [hiding]|it was next to the [place2]}. They {dug and dug|began to dig}. {Clonk|There it was}! {A wooden box|An old box}!",
    "{Slowly, they opened it|[N] opened it with both hands}. There was no gold in it. There was {a [thing]|a letter} and a note: \"{The real treasure is the friend who came with you|You were brave. Now hide a new treasure for someone else}.\"",
    "{[N] looked at [fn], and both began to laugh|They looked at each other and smiled}. \"{It is true|That is the best treasure of all},\" said [n].",
    "{They put something of their own into the box and hid it again|On the way home, they made a new map}. {Maybe you will find it one day|Who knows who will find it next}?",
]

ROBOT = [
    "{In the house of [n], there was a little robot|One day, [his] [elder] brought home a little robot}. {It was made of old cups and [colour] buttons|It had round eyes and a [colour] light}. {Its name was Beep|They called it Beep}.",
    "Beep could {count, clean and carry things|answer many questions}, but it did not know {how to laugh|what a friend is|how to play}. \"{What is a joke|What is a friend|Why do you play}?\" asked Beep.",
    "[N] {thought for a long time|tried to explain it}. \"{It is hard to say|You have to see it},\" [he] said. So [he] took Beep to the [place] {to meet [fn]|where [fn] was waiting}.",
    "They {played with the [thing]|played hide and seek}. {Beep counted to ten and found them at once|Beep fell into the water and went beep, beep, beep}. [Fn] {laughed until [fhe] cried|laughed so loud that the birds flew away}.",
    "{Then [fn] fell and hurt [fhis] knee. Beep came quickly and helped [fhim] up|Then it began to rain, and [fn] was cold. Beep held an umbrella over [fhim]}. \"{Is this what friends do|Is that right}?\" it asked. \"{Yes|Yes, just like that},\" said [n].",
    "The light of the robot turned {green|yellow|warm and bright}. \"{Then I am a friend|Now I understand},\" said Beep. {And it made a new sound that was almost like a laugh|It was very proud}.",
    "{Since then, there are three of them|From that day on, Beep learned one new thing every day}. {And every night, it says, \"Good night, friends.\"|And sometimes, it even tells a joke.}",
]

PLOTS = {
    "race": RACE, "learning": LEARNING, "way": LOST_WAY, "new": NEW_FRIEND,
    "greedy": GREEDY, "wish": WISH, "snow": SNOW, "treasure": TREASURE, "robot": ROBOT,
}
