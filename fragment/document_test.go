package fragment_test

const sp = "http://maps.example.org/topicmaps/test/"
