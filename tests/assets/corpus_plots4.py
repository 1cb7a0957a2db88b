"""Story plots, fourth part: funny mistakes, brave firsts and kind deeds.

See `corpus_plots` for how a plot is written.
"""

# One template stands on one line, however long it is.
# ruff: noqa: E501

MOON_IN_POND = [
    "One clear night, [n] walked along the pond with [fn]. {The water was dark and still|There was no wind at all}. \"{Look|Oh no}!\" called [n]. \"The moon {fell into the water|lies in the pond}! {It will get wet|We must save it}!\"",
    "[Fn] looked into the pond. There it was, {round and white|big and bright}. \"{We need a rope|Let us pull it out with a rope},\" said [fn]. {They ran home and came back with a rope|They found a long rope}.",
    "They {tried and tried|pulled with all their strength}, but {the moon broke into many small pieces|the moon moved and danced}. \"{Now it is broken|We made it worse},\" said [n] {sadly|and was afraid}.",
    "Then {the rope broke|[n] slipped}, and {both of them fell on their backs in the grass|they sat down in the grass with a bump}. {When they looked up, they could not believe it|They looked up}: the moon was in the sky, {as round as ever|safe and sound}!",
    "\"{We did it! We saved the moon|We pulled it out, and it flew back},\" called [n]. {An old frog in the pond laughed quietly, but he said nothing|A fish in the pond shook its head}.",
    "{They walked home and felt like heroes|All the way home, they were very proud}. {And the moon came with them and gave them light.|\"Good night, moon,\" said [fn]. \"Take better care next time!\"}",
]

SHY_SINGER = [
    "[N] had a beautiful voice, but [he] sang only {in the bath|when nobody could hear it|alone near the [place]}. {Because [he] was so shy, nobody knew about it|It was [his] secret}.",
    "{There was going to be a big show at school|On [day], there was a show in the village}. {Everyone wanted to do something|Some wanted to dance, and some wanted to tell jokes}. \"{And what will you do|What about you}, [n]?\" asked [fn]. \"Nothing,\" said [n].",
    "But one day, [fn] {heard [him]|walked by and heard a song}. [Fhe] {stood still and listened|could not move until it was over}. \"{That was wonderful|You sing like a bird},\" said [fn]. \"{You must sing at the show|Everyone should hear it}!\"",
    "\"{I cannot do it|I am too afraid|Everyone will look at me},\" said [n]. \"{Then look only at me|I will stand next to you|Close your eyes and think of the sea},\" said [fn].",
    "The day of the show came. [His] {knees shook|hands were cold}, {and [his] heart went boom, boom, boom|and [he] wanted to run away}. {Then [he] saw [fn] in the first row|[Fn] smiled at [him]}. [N] closed [his] eyes and began to sing.",
    "{It was very quiet|Nobody moved}. When the song was over, {everyone clapped and cheered|there was one moment of silence, and then a storm of hands}. {[His] [elder] had tears in [ehis] eyes|\"Once more!\" they called}.",
    "\"{Were you afraid|How was it}?\" asked [fn] later. \"{Yes, but I did it|Only at first},\" said [n] {and laughed|and was very happy}. {Now [he] sings wherever [he] goes|Being brave is being afraid and singing all the same}.",
]

NEIGHBOUR = [
    "Next door, there lived an old man. {He never smiled|He was always in a bad mood}, and the children were afraid of him. \"{Do not go there|He does not like children},\" said [fn].",
    "One day, {the [colour] ball flew over the wall|[n] kicked the ball too hard}, and it landed in his garden. \"{We will never get it back|Now it is gone},\" said [fn]. But [n] {took a deep breath|was brave} and {knocked at the door|rang the bell}.",
    "{Slowly, the door opened|It took a long time until the door opened}. \"{What do you want|Who is there}?\" asked the old man. \"{Good day. I am sorry|Please excuse me}. Our ball is in your garden,\" said [n]. {[His] voice was very small|[He] tried to smile}.",
    "The old man {looked at [him] for a long time|said nothing}. Then [n] saw {many books and a piano|an old photo of a boy with a ball} in the room. \"{Is that you|Do you play the piano|Have you read all these books}?\" [he] asked.",
    "{For the first time, the old man smiled|Then something in his face changed}. \"{Yes. But that was long ago|Yes. Nobody has asked me that for a long time},\" he said. \"{Would you like to come in|Do you want to hear a story}?\"",
    "{[N] called [fn], and they all drank tea|They stayed until the evening}. {The old man told them about the sea and far lands|The old man showed them how to play a song}. {He was not angry. He was only lonely|And when he laughed, he looked young}.",
    "{Now they visit him every [day]|After that, the ball often flew over the wall, and always on purpose}. {And in his window, there is always a light and a plate of cookies|And the old man is never alone any more}.",
]

MESSY_ROOM = [
    "The room of [n] was {a big mess|never tidy}. There were {toys on the floor, socks on the lamp|books on the bed, stones in the shoes} and {an old [food] under the bed|crumbs everywhere}. \"{Please clean your room|You have to tidy up today},\" said [his] [elder].",
    "\"{Later|Tomorrow|I do not have time},\" said [n] and {went on playing|went out to play}. {But the mess grew bigger and bigger|The next day, the mess was even bigger}.",
    "Then [fn] came. \"{Let us play with your [thing],|Can you show me your [noun]?|May I borrow your [noun]?}\" [fhe] said. {[N] looked for it everywhere|[N] looked here and there}. {[He] found many things, but not the [noun]|It was nowhere}.",
    "\"{It is lost in the mess|I cannot find anything here},\" said [n]. \"{Then let us make a game of it|I have an idea},\" said [fn]. \"{You are the captain, and every toy is a sailor who must go to bed|Who puts away the most things in ten minutes wins}!\"",
    "{One, two, three, they started|They sang and worked}. {Soon, the books stood in a row and the toys were in the box|The socks went into the basket and the books went home}. {Under the last shirt|At the very bottom}, there was the [thing]!",
    "[His] [elder] {came in and could not believe it|looked in}. \"{Is this really the same room|What happened here}?\" [ehe] asked. {\"We had visitors from the sea,\" said [n]|\"It was only a game,\" said [fn]}.",
    "{Now there was room for playing|Now they had much more space to play}. {And [n] found out that tidying up is not so bad with a friend|And the [noun] got its own place, so that it was never lost again}.",
]

FIRST_DAY = [
    "{Tomorrow was the first day of school|It was the first day of school}, and [n] had {a strange feeling in [his] tummy|many questions in [his] head}. \"{What if nobody likes me|What if I get lost|What if it is too hard}?\" [he] asked.",
    "\"{Everyone feels like that on the first day|I was afraid on my first day, too},\" said [his] [elder]. [Ehe] gave [him] {a small stone|a [colour] button}. \"{Hold it when you are afraid|Put it in your pocket}. {Then you know that I think of you|It will make you brave}.\"",
    "{At school, everything was big and loud|There were so many children}. [N] {stood at the door|did not know where to go} and held the {little thing|small present} in [his] hand. {It was warm|That helped a little}.",
    "Then [he] saw [fn], who {was crying|looked even more afraid}. [N] {thought for a moment|forgot [his] own fear} and went to [fhim]. \"{Here, you can hold this|This helps},\" [he] said. \"{It makes you brave|It worked for me}.\"",
    "{[Fn] looked at it and smiled|[Fn] stopped crying}. \"{But what about you|Do you not need it}?\" asked [fn]. \"{I think I do not need it now|We can share it},\" said [n]. {They sat down at the same table|Hand in hand, they went in}.",
    "The teacher {was kind|had a friendly face}. They {learned a song|painted a house|counted to ten} and {heard a story about a bear|played in the sun}. {The day was over much too soon|Time went by so fast}.",
    "\"{How was it|Were you afraid}?\" asked [his] [elder]. {\"Only until I helped someone,\" said [n]|\"I have a friend,\" said [n] proudly}. {\"When is it tomorrow?\" [he] asked, and [his] [elder] laughed|And [he] could not wait for the next day}.",
]

SMALL_DRAGON = [
    "In the mountains behind the village, there lived a small dragon. All the other dragons could {breathe fire|make big flames}, but when the small dragon tried it, {only soap bubbles came out|only a little warm wind came out}. {The others laughed|So the others did not play with it}.",
    "One day, [n] {climbed up the mountain|picked flowers there} and heard someone cry. {Behind a rock sat the dragon|It was the small dragon}. {[N] was a little afraid, but [he] went closer|[N] was not afraid at all}. \"{Why do you cry|What is wrong}?\" [he] asked.",
    "\"{I am not a real dragon|I cannot do what the others can do},\" said the dragon. \"Show me,\" said [n]. The dragon took a deep breath, and {puff|whoosh}! {[N] had to laugh, but in a friendly way|It was not fire, but it was lovely}.",
    "\"{That is much better than fire|That is wonderful},\" said [n]. \"{Fire can burn things, but this makes people happy|Nobody else can do that}. {Come with me|You must meet [fn]}!\" {So they went down to the village|The dragon carried [him] down to the village}.",
    "{First, the people ran away|At first, everyone hid}. But [fn] {came out and said hello|was curious and came closer}. Soon, {all the children danced around the dragon|the children rode on its back}. {\"Again, again!\" they called|Nobody was afraid any more}.",
    "{Even the other dragons came to look|When the other dragons heard the laughter, they came, too}. \"{Can you teach us|How do you do that}?\" they asked. {The small dragon felt very big|The small dragon was so proud that it grew a little}.",
    "{Now it visits the village every [day]|Since then, there is a dragon at every birthday}. {And if somebody is different, [n] says, \"That is how it should be.\"|And nobody laughs at it any more, but everyone laughs with it.}",
]

PICNIC = [
    "One [weather] day, [n], [fn] and [his] [elder] had a picnic near the [place]. They brought {bread, cheese and apples|a cake and some juice|sandwiches and cookies} and a big [colour] blanket. {[N] carried the basket|[Fn] carried the basket}.",
    "{They played for a while|First, they played with the [noun]}. When they came back, {some of the food was gone|one sandwich was gone}! \"{Who ate it|Where is it}?\" asked [n]. \"{It was not me|I did not eat it},\" said [fn]. \"{It was not me|I was with you},\" said [n].",
    "{They looked at each other|Each of them thought that it was the other}. {Then something moved in the grass|Then they saw crumbs in the grass}. \"{Shh|Be quiet},\" said [his] [elder]. \"{Follow the crumbs|Let us see where they go}.\"",
    "The crumbs went {around the tree|over the little path} and {under a bush|behind a big stone}. There {sat|was} {a mother mouse with [many] tiny babies|a family of birds|a mother cat with [many] kittens}. {They were eating the food|There was the rest of the food}!",
    "\"{They were hungry|Look how small they are},\" said [fn]. {Nobody was angry any more|[N] smiled}. \"{We have enough for all|Then it is a picnic for everyone},\" said [n], and [he] {put some more food on a leaf|gave them a piece of [his] [food]}.",
    "\"I am sorry that I thought it was you,\" said [n]. \"I thought it was you!\" said [fn], and {they both laughed|they laughed until the sun went down}. {From then on, they always packed a little more|On the next picnic, there was one more plate}.",
]

ECHO = [
    "[N] and [his] [elder] {went up into the mountains|climbed a high hill}. {It was a long way, but the air was clear|On the top, they could see the whole land}. [N] was so happy that [he] called, \"Hello!\"",
    "\"Hello!\" {said a voice from far away|came the answer}. {[N] was surprised|[N] looked around, but there was nobody}. \"[ask]?\" [he] called. \"[ask]?\" called the voice.",
    "{[N] got angry|That made [n] angry}. \"[rude]!\" [he] called. \"[rude]!\" {it came back|said the voice}. {[N] was almost in tears|[N] ran to [his] [elder]}. \"{There is a bad child over there|Someone is not nice to me},\" [he] said.",
    "[His] [elder] smiled. \"{Try it again, but say something kind|Say something friendly and see what happens},\" [ehe] said. [N] {was not sure, but [he] tried it|went back to the edge}. \"[nice]!\" [he] called.",
    "\"[nice]!\" said the voice. [N] {began to smile|laughed}. \"{What is it|Who is there}?\" [he] asked. \"{It is called an echo|It is the mountain},\" said [his] [elder]. \"{It gives you back what you give|The world often answers in the way you speak to it}.\"",
    "{On the way home, [n] was quiet and thought about it|[N] never forgot that day}. {The next morning, [he] said something kind to [fn], and [fn] said something kind, too.|When [he] met [fn], [he] tried it: \"Good morning, my friend!\" And the echo worked there, too.}",
]

PLOTS = {
    "moon": MOON_IN_POND, "singer": SHY_SINGER, "neighbour": NEIGHBOUR, "room": MESSY_ROOM,
    "first": FIRST_DAY, "dragon": SMALL_DRAGON, "picnic": PICNIC, "echo": ECHO,
}
